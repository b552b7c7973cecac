"""``list[np.ndarray]``: vLLM #26368, shipped in 0.11.1 and 0.11.2, then reverted (#29121)."""

import sys
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

import numpy as np

from engines.protocol import Int32Array


class ListOfArrays:
    """One array a request: not tracked, but an object of over 100 bytes to make and to pickle."""

    columnar = True
    owns_memory = True

    def from_device(self, tokens: Int32Array, num_tokens: Int32Array | None) -> list[Int32Array]:
        """A view a row into one copy of the buffer."""
        rows = list(tokens.copy())
        if num_tokens is None:
            return rows
        return [row[:count] for row, count in zip(rows, num_tokens.tolist(), strict=True)]

    def per_request(self, sampled: list[Int32Array]) -> Iterable[list[int]]:
        """`ndarray.tolist` for each request, one by one."""
        return map(np.ndarray.tolist, sampled)

    def columns(self, sampled: list[Int32Array]) -> tuple[Int32Array, Int32Array]:
        """The rows joined again."""
        if not sampled:  # np.concatenate refuses no arrays, and np.array([]) would be float64
            return np.empty(0, np.int32), np.empty(0, np.int32)
        num_tokens = np.fromiter(map(len, sampled), dtype=np.int32, count=len(sampled))
        return np.concatenate(sampled), num_tokens

    def to_buffers(self, sampled: list[Int32Array]) -> list[Int32Array]:
        """The rows joined, and how many tokens each has."""
        return list(self.columns(sampled))

    def from_buffers(self, arrays: Sequence[Int32Array]) -> list[Int32Array]:
        """A view a row again."""
        values, counts = arrays
        ends = accumulate(counts.tolist(), initial=0)
        return [values[a:b] for a, b in pairwise(ends)]

    def nbytes(self, sampled: list[Int32Array]) -> int:
        """The list, the array objects and what they show of the copy."""
        headers = sum(
            sys.getsizeof(row) - (row.nbytes if row.base is None else 0) for row in sampled
        )
        return sys.getsizeof(sampled) + headers + sum(row.nbytes for row in sampled)
