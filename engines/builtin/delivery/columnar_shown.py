"""What a step shows of each row of bytes: whole characters, but none that may begin a stop."""

import codecs
from collections.abc import Iterator, Mapping

import numpy as np

from engines.builtin.columns import sliced, with_rows
from engines.builtin.delivery.columnar_stops import Appended, character_ends
from engines.builtin.text.row_bytes import RowBytes
from engines.protocol import Int32Array, Int64Array, SamplingParams


class ShownText:
    """What `RunningText` and `TextUntilStop` return, as bytes.

    ``raw``: the bytes of ``text`` are as they come; else no row ends within a character.
    """

    def __init__(self, num_rows: int, text: RowBytes, raw: bool) -> None:
        self._text = text
        self._raw = raw
        self._num_shown = np.zeros(num_rows, np.int64)  # bytes
        self._num_withheld = np.zeros(num_rows, np.int64)  # characters

    def reserve(self, num_rows: int) -> None:
        """Have at least so many rows."""
        self._num_shown = with_rows(self._num_shown, num_rows)
        self._num_withheld = with_rows(self._num_withheld, num_rows)

    def put(self, row: int, params: SamplingParams) -> None:
        """A request takes a row, which has no bytes yet."""
        longest = max(map(len, params.stop), default=1)
        self._num_shown[row] = 0
        self._num_withheld[row] = 0 if params.include_stop_str_in_output else longest - 1

    def rest(self, row: int) -> bytes:
        """What has not been shown of a row."""
        return self._text.read(row)[self._num_shown[row] :]

    def take(
        self, added: Appended, finished: Int32Array, instead: Mapping[int, bytes]
    ) -> list[bytes]:
        """What is new of each row of a step, all that is left of those in ``finished``.

        Those in ``instead`` show that, by position.
        """
        rows = added.rows
        begins = self._num_shown[rows]
        ends = self._text.used[rows]
        going_on = np.ones(len(rows), np.bool_)
        going_on[finished] = False
        if self._raw:
            positions = np.flatnonzero(going_on)
            ends[positions] = character_ends(added, self._text, positions)
        ends = np.maximum(ends, begins)
        withholding = np.flatnonzero(going_on & (self._num_withheld[rows] > 0))
        if len(withholding):
            ends[withholding] = self._before_withheld(
                rows[withholding], begins[withholding], ends[withholding]
            )
        self._num_shown[rows] = ends
        shown = sliced(self._text.gather(rows, begins, ends).tobytes(), ends - begins)
        for position, data in instead.items():
            shown[position] = data
        return shown

    def _before_withheld(
        self, rows: Int32Array, begins: Int64Array, ends: Int64Array
    ) -> Int64Array:
        """Where the last characters begin that each row withholds; its begin if it has no more."""
        num_withheld = self._num_withheld[rows]
        data = self._text.gather(rows, begins, ends)
        data_ends = np.cumsum(ends - begins)
        data_begins = data_ends - (ends - begins)
        characters = np.flatnonzero((data & 0xC0) != 0x80)
        first = np.searchsorted(characters, data_begins)
        withheld = np.searchsorted(characters, data_ends) - num_withheld
        places = np.append(characters, 0)[np.maximum(withheld, 0)] - data_begins
        until = begins + np.where(withheld > first, places, 0)
        for nth in _not_utf8(data.tobytes(), data_ends):
            own = data[data_begins[nth] : data_ends[nth]].tobytes()
            until[nth] = begins[nth] + _length_without(own, int(num_withheld[nth]))
        return until


def _not_utf8(data: bytes, ends: Int64Array) -> Iterator[int]:
    """Which of the texts that end at ``ends`` are no UTF-8; none ends within a character."""
    view = memoryview(data)
    begin = 0
    while True:
        try:
            codecs.utf_8_decode(view[begin:], "strict", True)
        except UnicodeDecodeError as error:
            nth = int(np.searchsorted(ends, begin + error.start, side="right"))
            yield nth
            begin = int(ends[nth])
        else:
            return


def _length_without(data: bytes, num_characters: int) -> int:
    """How many bytes are before the last characters, where each U+FFFD stands for some bytes."""
    text = data.decode(errors="replace")
    shown = text[: max(len(text) - num_characters, 0)]
    for length in range(len(data)):
        parts = [part.decode(errors="replace") for part in (data[:length], data[length:])]
        if parts == [shown, text[len(shown) :]]:
            return length
    return len(data)
