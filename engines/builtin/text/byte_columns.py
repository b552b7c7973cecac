"""A step's tokens as bytes, for the whole batch at once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.builtin.text.odd_rows import OddRows
from engines.builtin.text.token_pieces import TokenPieces
from engines.protocol import Int32Array, Int64Array


class GatheredBytes(NamedTuple):
    """``data`` uint8, ``counts[i]`` of it row ``i``'s; its first ``ends[t]`` are those of the
    step's tokens up to ``t``. Both int64.
    """

    data: NDArray[np.uint8]
    counts: Int64Array
    ends: Int64Array


class ByteColumns:
    """Gathers `TokenPieces`; ``odd`` is None where no row can be."""

    def __init__(self, table: TokenPieces, num_rows: int) -> None:
        self._pieces = table.flat()
        self.odd = None if table.rules.byte_level else OddRows(table, num_rows)

    def gather(
        self, rows: Int32Array, token_ids: Int32Array, counts: Int32Array, decoded: Int32Array
    ) -> GatheredBytes:
        """Bytes of ``token_ids``, ``counts[i]`` of them row ``i``'s.

        Of these the first ``decoded[i]`` have text: all, or all but the last.
        """
        data, offsets, lengths = self._pieces
        offsets, lengths = offsets[token_ids], lengths[token_ids]
        row_ends = np.cumsum(counts)
        lengths[row_ends[decoded < counts] - 1] = 0
        if self.odd and (overrides := self.odd.look_up(rows, token_ids, counts, decoded)):
            nths = [override.nth for override in overrides]
            lengths[nths] = sizes = np.array([len(override.data) for override in overrides])
            offsets[nths] = len(data) + np.cumsum(sizes) - sizes
            own = np.frombuffer(b"".join(override.data for override in overrides), np.uint8)
            data = np.concatenate([data, own])
        ends = np.cumsum(lengths)
        places = np.arange(lengths.sum())
        places += np.repeat(offsets - (ends - lengths), lengths)
        until = np.concatenate([[0], ends])
        return GatheredBytes(data[places], until[row_ends] - until[row_ends - counts], ends)
