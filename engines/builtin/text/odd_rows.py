"""Rows of a batch whose text cannot be looked up token by token, gone through one by one.

Byte-level tokens need none of this. With a fallback decoder a row is odd while its run of byte
tokens is open, and at its beginning, where spaces are stripped.
"""

from typing import NamedTuple

import numpy as np

from engines.builtin.columns import with_rows
from engines.builtin.text.byte_fallback import ByteFallbackStream
from engines.builtin.text.token_pieces import TokenPieces
from engines.protocol import Int32Array, Int64Array


class Override(NamedTuple):
    """In the place of a token's own bytes; ``nth`` counts the step's tokens."""

    nth: int
    data: bytes


class OddRows:
    """A stream for each row that is odd now."""

    def __init__(self, table: TokenPieces, num_rows: int) -> None:
        self._table = table
        self._incomplete = table.incomplete()
        self._is_odd = np.zeros(num_rows, np.bool_)
        self._streams: dict[int, ByteFallbackStream] = {}

    def reserve(self, num_rows: int) -> None:
        """Have at least so many rows."""
        self._is_odd = with_rows(self._is_odd, num_rows)

    def start(self, row: int) -> None:
        """A new request."""
        self.put(row, ByteFallbackStream(self._table))

    def take(self, row: int) -> ByteFallbackStream | None:
        """A row's stream, None where it is not odd; the row has none any more."""
        self._is_odd[row] = False
        return self._streams.pop(row, None)

    def put(self, row: int, stream: ByteFallbackStream | None) -> None:
        """Give a row a stream, if it needs one."""
        self.take(row)
        if stream is not None and not stream.settled:
            self._streams[row] = stream
            self._is_odd[row] = True

    def look_up(
        self, rows: Int32Array, token_ids: Int32Array, counts: Int32Array, decoded: Int32Array
    ) -> list[Override]:
        """Bytes of the tokens of odd rows.

        Row ``i`` has ``counts[i]`` of ``token_ids``; the first ``decoded[i]`` have text.
        """
        odd = self._is_odd[rows]
        incomplete = np.flatnonzero(self._incomplete[token_ids])
        if len(incomplete):
            odd[np.repeat(np.arange(len(rows)), counts)[incomplete]] = True
        overrides: list[Override] = []
        begins: Int64Array = np.cumsum(counts, dtype=np.int64) - counts
        for position in np.flatnonzero(odd).tolist():
            row = int(rows[position])
            stream = self.take(row) or ByteFallbackStream(self._table, at_start=False)
            begin = int(begins[position])
            for nth in range(begin, begin + int(decoded[position])):
                text = stream.step(int(token_ids[nth]))
                overrides.append(Override(nth, text.encode()))
            self.put(row, stream)
        return overrides
