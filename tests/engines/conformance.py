"""What any representation must keep to, the package's own or another's."""

import pickle

import numpy as np
from hypothesis import strategies as st

from engines.builtin.representations import PLACEHOLDER_TOKEN_ID

Rows = list[list[int]]


@st.composite
def batches(draw) -> tuple[Rows, int]:
    """Rows of 0 to ``width`` tokens, as a step of up to 9 requests brings them; and the width."""
    width = draw(st.integers(1, 4))
    tokens = st.integers(0, 2**31 - 1)
    return draw(st.lists(st.lists(tokens, max_size=width), max_size=9)), width


def shape(representation, rows: Rows, width: int):
    """The rows in their representation, and the host buffer it was made from."""
    host = np.full((len(rows), width), PLACEHOLDER_TOKEN_ID, np.int32)
    for row, tokens in enumerate(rows):
        host[row, : len(tokens)] = tokens
    one_each = width == 1 and all(rows)
    counts = None if one_each else np.array([len(row) for row in rows], np.int32)
    return representation.from_device(host, counts), host


def read(representation, sampled) -> Rows:
    """What `per_request` says, its ints as lists of one; checks the types on the way."""
    read = []
    for tokens in representation.per_request(sampled):
        assert type(tokens) in (int, list)
        row = [tokens] if type(tokens) is int else list(tokens)
        assert all(type(token) is int for token in row)
        read.append(row)
    return read


def read_columns(representation, sampled) -> Rows:
    """What `columns` says, cut into rows; checks dtypes and shapes on the way."""
    values, counts = representation.columns(sampled)
    assert (values.dtype, counts.dtype) == (np.int32, np.int32)
    assert values.ndim == counts.ndim == 1
    assert counts.sum() == len(values)
    return [part.tolist() for part in np.split(values, np.cumsum(counts)[:-1])][: len(counts)]


def check(representation, rows: Rows, width: int) -> None:
    """Round trip, both readings, a pickled copy, memory, and the buffer's next use."""
    sampled, host = shape(representation, rows, width)
    readings = [read] + [read_columns] * representation.columnar
    for reading in readings:
        assert reading(representation, sampled) == rows
        assert reading(representation, sampled) == rows, "reading must not use it up"
        assert reading(representation, pickle.loads(pickle.dumps(sampled, 5))) == rows
    num_bytes = representation.nbytes(sampled)
    assert type(num_bytes) is int
    assert num_bytes >= 4 * sum(map(len, rows))
    assert num_bytes > 0 or not rows
    if representation.owns_memory:
        host.fill(7)
        for reading in readings:
            assert reading(representation, sampled) == rows
