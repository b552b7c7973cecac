"""``list[list[int]]``: vLLM up to 0.11.0, and again since 0.12."""

import sys
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, pairwise

import numpy as np

from engines.protocol import Int32Array


class ListOfLists:
    """One tracked list a request, all alive at once: batch + 1 of them a step."""

    columnar = False
    owns_memory = True

    def from_device(self, tokens: Int32Array, num_tokens: Int32Array | None) -> list[list[int]]:
        """All rows at once by `tolist`, each cut to its count."""
        rows: list[list[int]] = tokens.tolist()
        if num_tokens is not None:
            for row, count in zip(rows, num_tokens.tolist(), strict=True):
                del row[count:]
        return rows

    def per_request(self, sampled: list[list[int]]) -> Iterable[list[int]]:
        """The list itself."""
        return sampled

    def columns(self, sampled: list[list[int]]) -> tuple[Int32Array, Int32Array]:
        """Raises NotImplementedError: Python objects have none."""
        raise NotImplementedError("a list of lists has no columns")

    def to_buffers(self, sampled: list[list[int]]) -> list[Int32Array]:
        """All tokens, and how many each row has."""
        counts = np.fromiter(map(len, sampled), np.int32, len(sampled))
        return [np.fromiter(chain.from_iterable(sampled), np.int32), counts]

    def from_buffers(self, arrays: Sequence[Int32Array]) -> list[list[int]]:
        """A list a row again."""
        values, counts = arrays
        if len(values) == len(counts) and counts.all():
            rows: list[list[int]] = values[:, None].tolist()
            return rows
        tokens = values.tolist()
        return [tokens[a:b] for a, b in pairwise(accumulate(counts.tolist(), initial=0))]

    def nbytes(self, sampled: list[list[int]]) -> int:
        """The list, the lists in it and every int."""
        return sys.getsizeof(sampled) + sum(
            sys.getsizeof(row) + sum(map(sys.getsizeof, row)) for row in sampled
        )
