"""``list[int | list[int]]``: a bare int where a request has one token (vLLM #26369)."""

import sys
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np

from engines.protocol import Int32Array


class IntOrList:
    """Tracked lists only for requests with no token or several; ints are not tracked."""

    columnar = False
    owns_memory = True

    def from_device(
        self, tokens: Int32Array, num_tokens: Int32Array | None
    ) -> list[int | list[int]]:
        """A bare int for a row of one token, a list for any other."""
        if num_tokens is None:
            column: list[int | list[int]] = tokens[:, 0].tolist()
            return column
        rows: list[list[int]] = tokens.tolist()
        return [
            row[0] if count == 1 else row[:count]
            for row, count in zip(rows, num_tokens.tolist(), strict=True)
        ]

    def per_request(self, sampled: list[int | list[int]]) -> Iterable[int | list[int]]:
        """The list itself."""
        return sampled

    def columns(self, sampled: list[int | list[int]]) -> tuple[Int32Array, Int32Array]:
        """Raises NotImplementedError: Python objects have none."""
        raise NotImplementedError("a list of ints and lists has no columns")

    def to_buffers(self, sampled: list[int | list[int]]) -> list[Int32Array]:
        """All tokens, and how many each row has."""
        rows = [[item] if isinstance(item, int) else item for item in sampled]
        counts = np.fromiter(map(len, rows), np.int32, len(rows))
        return [np.fromiter(chain.from_iterable(rows), np.int32), counts]

    def from_buffers(self, arrays: Sequence[Int32Array]) -> list[int | list[int]]:
        """A bare int for a row of one token, a list for any other."""
        values, counts = arrays
        tokens: list[Any] = values.tolist()
        if len(values) == len(counts) and counts.all():
            return tokens
        return [
            tokens[a] if b - a == 1 else tokens[a:b]
            for a, b in pairwise(accumulate(counts.tolist(), initial=0))
        ]

    def nbytes(self, sampled: list[int | list[int]]) -> int:
        """The list, the lists in it and every int."""
        return sys.getsizeof(sampled) + sum(
            sys.getsizeof(item) + (sum(map(sys.getsizeof, item)) if isinstance(item, list) else 0)
            for item in sampled
        )
