"""A growing string of bytes a row, all rows in one matrix."""

import numpy as np
from numpy.typing import NDArray

from engines.builtin.columns import with_rows
from engines.protocol import Int32Array, Int64Array

_FIRST_WIDTH = 256


class RowBytes:
    """``used`` int64 ``[num_rows]``: bytes in each row."""

    def __init__(self, num_rows: int) -> None:
        self._bytes = np.zeros((num_rows, _FIRST_WIDTH), np.uint8)
        self.used = np.zeros(num_rows, np.int64)

    def reserve(self, num_rows: int) -> None:
        """Have at least so many rows."""
        self._bytes = with_rows(self._bytes, num_rows)
        self.used = with_rows(self.used, num_rows)

    def append(self, rows: Int32Array, data: NDArray[np.uint8], counts: Int64Array) -> None:
        """Put ``counts`` int64 ``[num_rows]`` bytes each of ``data`` behind what ``rows`` have."""
        begins = self.used[rows]
        ends = begins + counts
        self._widen(int(ends.max(initial=0)))
        firsts = rows.astype(np.int64) * self._bytes.shape[1] + begins
        places = np.arange(len(data))
        places += np.repeat(firsts - (np.cumsum(counts) - counts), counts)
        self._bytes.reshape(-1)[places] = data
        self.used[rows] = ends

    def gather(self, rows: Int32Array, begins: Int64Array, ends: Int64Array) -> NDArray[np.uint8]:
        """The bytes of each row from its begin to its end, row after row."""
        counts = ends - begins
        firsts = rows.astype(np.int64) * self._bytes.shape[1] + begins
        places = np.arange(counts.sum())
        places += np.repeat(firsts - (np.cumsum(counts) - counts), counts)
        gathered: NDArray[np.uint8] = self._bytes.reshape(-1)[places]
        return gathered

    def at(self, rows: Int32Array, places: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The byte at each place of each row; 0 before a row's first."""
        found: NDArray[np.uint8] = self._bytes[rows, np.maximum(places, 0)]
        return np.where(places < 0, np.uint8(0), found)

    def tails(self, rows: Int32Array) -> NDArray[np.uint8]:
        """The last four bytes of each row, uint8 ``[num_rows, 4]``; 0 before its first."""
        return self.at(rows[:, None], self.used[rows][:, None] + np.arange(-4, 0))

    def read(self, row: int) -> bytes:
        """A copy of a row."""
        return self._bytes[row, : self.used[row]].tobytes()

    def write(self, row: int, data: bytes) -> None:
        """Put ``data`` in place of what a row has."""
        self._widen(len(data))
        self._bytes[row, : len(data)] = np.frombuffer(data, np.uint8)
        self.used[row] = len(data)

    def _widen(self, most: int) -> None:
        width = self._bytes.shape[1]
        if most > width:
            while width < most:
                width *= 2
            self._bytes = np.pad(self._bytes, ((0, 0), (0, width - self._bytes.shape[1])))
