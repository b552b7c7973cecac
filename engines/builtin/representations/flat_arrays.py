"""Values and offsets, as in Arrow and CSR: int32 ``[total]`` and int32 ``[num_reqs + 1]``."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from engines.builtin.representations import ragged_mask
from engines.protocol import Int32Array


class FlatTokens(NamedTuple):
    """Row ``i`` holds ``values[offsets[i]:offsets[i + 1]]``."""

    values: Int32Array
    offsets: Int32Array


class FlatArrays:
    """Two arrays a step, whatever the batch, and no padding."""

    columnar = True
    owns_memory = True

    def from_device(self, tokens: Int32Array, num_tokens: Int32Array | None) -> FlatTokens:
        """Tokens without their padding, and where each row begins."""
        if num_tokens is None:
            return FlatTokens(tokens[:, 0].copy(), np.arange(len(tokens) + 1, dtype=np.int32))
        offsets = np.zeros(len(tokens) + 1, np.int32)
        np.cumsum(num_tokens, out=offsets[1:])
        return FlatTokens(tokens[ragged_mask(num_tokens, tokens.shape[1])], offsets)

    def per_request(self, sampled: FlatTokens) -> Iterable[list[int]]:
        """A slice and a list for each request, made one by one."""
        values, offsets = sampled
        for start, end in pairwise(offsets.tolist()):
            yield values[start:end].tolist()

    def columns(self, sampled: FlatTokens) -> tuple[Int32Array, Int32Array]:
        """The values as they are, the counts from the offsets."""
        offsets = sampled.offsets
        return sampled.values, offsets[1:] - offsets[:-1]

    def to_buffers(self, sampled: FlatTokens) -> Sequence[Int32Array]:
        """The two."""
        return sampled

    def from_buffers(self, arrays: Sequence[Int32Array]) -> FlatTokens:
        """The two again."""
        return FlatTokens(*arrays)

    def nbytes(self, sampled: FlatTokens) -> int:
        """Both arrays."""
        return sampled.values.nbytes + sampled.offsets.nbytes
