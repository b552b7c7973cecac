"""Stop strings of many rows, looked for in all of them at once."""

import numpy as np
from numpy.typing import NDArray

from engines.builtin.columns import with_rows
from engines.builtin.text.row_bytes import RowBytes
from engines.protocol import BoolArray, Int32Array, Int64Array

_NO_BYTE = 0xFE
"""Fills a pattern that is shorter than the longest; occurs in no UTF-8."""


class StopPatterns:
    """Bytes from the last to the first, uint8 ``[num_rows, num_stops, longest]``."""

    def __init__(self, num_rows: int) -> None:
        self._patterns = np.full((num_rows, 0, 0), _NO_BYTE, np.uint8)

    def reserve(self, num_rows: int) -> None:
        """Have at least so many rows."""
        self._patterns = with_rows(self._patterns, num_rows, fill=_NO_BYTE)

    def put(self, row: int, stop: tuple[bytes, ...]) -> None:
        """Give a row its stop strings, in place of any it had."""
        _, num_stops, longest = self._patterns.shape
        more = max(0, len(stop) - num_stops), max(0, max(map(len, stop), default=0) - longest)
        if any(more):
            padding = ((0, 0), (0, more[0]), (0, more[1]))
            self._patterns = np.pad(self._patterns, padding, constant_values=_NO_BYTE)
        self._patterns[row] = _NO_BYTE
        for nth, each in enumerate(stop):
            self._patterns[row, nth, : len(each)] = np.frombuffer(each[::-1], np.uint8)

    def candidates(
        self, rows: Int32Array, text: RowBytes, data: NDArray[np.uint8], counts: Int64Array
    ) -> BoolArray:
        """Whether each of ``rows`` may have a stop string that ends in its last ``counts`` bytes.

        ``data`` are those bytes, row after row. UTF-8 is found at characters' borders only, so
        none is missed; a row without stop strings can be among those that may have one.
        """
        found = np.zeros(len(rows), np.bool_)
        owner = np.repeat(np.arange(len(rows)), counts)
        for patterns in self._patterns[rows].transpose(1, 2, 0):
            hits = np.flatnonzero(data == patterns[0][owner])
            own = owner[hits]
            places = hits + (text.used[rows] - np.cumsum(counts))[own]
            for nth, pattern in enumerate(patterns[1:], 1):
                byte = pattern[own]
                goes_on = (byte == _NO_BYTE) | (text.at(rows[own], places - nth) == byte)
                own, places = own[goes_on], places[goes_on]
            found[own] = True
        return found
