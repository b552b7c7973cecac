"""Columns of a batch: a row a request, or a number of items a row and all rows' items in one."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.protocol import Int32Array, Int64Array


def nth_in_row(counts: Int32Array) -> NDArray[np.int64]:
    """0, 1, … for each of ``counts[i]`` items of row ``i``, row after row."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def with_rows(array: NDArray[Any], num_rows: int, fill: int = 0) -> NDArray[Any]:
    """The array, or a copy with at least ``num_rows`` rows, the new ones full of ``fill``."""
    if len(array) >= num_rows:
        return array
    more = max(num_rows, 2 * len(array)) - len(array)
    padding = [(0, more), *[(0, 0)] * (array.ndim - 1)]
    return np.pad(array, padding, constant_values=fill)


def sliced(data: bytes, counts: Int64Array) -> list[bytes]:
    """``counts[i]`` bytes for each row ``i``, row after row."""
    return [data[begin:end] for begin, end in pairwise([0, *np.cumsum(counts).tolist()])]
