"""Stop strings in rows of bytes: a search of all rows at once, then a look at those found."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.builtin.columns import with_rows
from engines.builtin.text import REPLACEMENT
from engines.builtin.text.byte_columns import GatheredBytes
from engines.builtin.text.row_bytes import RowBytes
from engines.builtin.text.stop_patterns import StopPatterns
from engines.builtin.text.stop_strings import find_stop
from engines.builtin.text.utf8 import ends_complete
from engines.protocol import Int32Array, Int64Array, SamplingParams


class Appended(NamedTuple):
    """What a step has added.

    A row each: ``num_tokens`` got now, of which ``decoded`` have text, and ``num_before`` it had
    already; ``num_bytes_before`` the step.
    """

    rows: Int32Array
    num_tokens: Int32Array
    decoded: Int32Array
    num_before: Int32Array
    num_bytes_before: Int64Array
    columns: GatheredBytes

    def token_ends(self, position: int) -> list[int]:
        """How many bytes a row had after each token of the step."""
        first = int(self.num_tokens[:position].sum())
        before = int(self.num_bytes_before[position])
        ends = self.columns.ends
        before -= int(ends[first - 1]) if first else 0
        return [before + end for end in ends[first : first + int(self.decoded[position])].tolist()]


def character_ends(added: Appended, text: RowBytes, positions: NDArray[np.intp]) -> Int64Array:
    """Bytes that each of these rows had after the last token of the step at a character's end.

    -1 where none of them was at one. The rows' bytes are as they come, UTF-8 or not.
    """
    rows = added.rows[positions]
    ends = text.used[rows]
    within = ~ends_complete(text.tails(rows))
    ends[within] = -1
    for nth in np.flatnonzero(within & (added.decoded[positions] > 1)).tolist():
        whole = text.read(int(rows[nth]))
        for end in reversed(added.token_ends(int(positions[nth]))):
            if _is_complete(whole[:end]):
                ends[nth] = end
                break
    return ends


def _is_complete(text: bytes) -> bool:
    return not text[-4:].decode(errors="replace").endswith(REPLACEMENT)


class CompletedStop(NamedTuple):
    """A stop string was completed by the ``num_tokens``-th token of the step; ``text`` is left."""

    num_tokens: int
    text: bytes


class ColumnarStops:
    """What `TextUntilStop` finds, at the same tokens: text counts from when it could be shown.

    ``raw``: the bytes are as they come; else no row ends within a character.
    """

    def __init__(self, num_rows: int, text: RowBytes, raw: bool) -> None:
        self._text = text
        self._raw = raw
        self._patterns = StopPatterns(num_rows)
        self._has_stop = np.zeros(num_rows, np.bool_)
        self._params: dict[int, SamplingParams] = {}
        self._stop: dict[int, tuple[bytes, ...]] = {}
        self._is_pending = np.zeros(num_rows, np.bool_)
        self._num_searched = np.zeros(num_rows, np.int64)

    def reserve(self, num_rows: int) -> None:
        """Have at least so many rows."""
        self._patterns.reserve(num_rows)
        self._has_stop = with_rows(self._has_stop, num_rows)
        self._is_pending = with_rows(self._is_pending, num_rows)
        self._num_searched = with_rows(self._num_searched, num_rows)

    def put(self, row: int, params: SamplingParams) -> None:
        """A request takes a row, which has no bytes yet."""
        self._stop[row] = tuple(each.encode() for each in params.stop)
        self._params[row] = params
        self._has_stop[row] = bool(params.stop)
        self._patterns.put(row, self._stop[row])
        self._num_searched[row] = 0
        self._is_pending[row] = False

    def has_stop(self, row: int) -> bool:
        """Whether a row has stop strings."""
        return bool(self._has_stop[row])

    def find(
        self, added: Appended, finished: Collection[int], wholes: Mapping[int, bytes]
    ) -> dict[int, CompletedStop]:
        """By position in the step.

        Rows in ``finished`` end with it anyhow: nothing is withheld from the search. Where such a
        row's text is not as its bytes have it, it is in ``wholes``.
        """
        positions = np.flatnonzero(self._has_stop[added.rows])
        if not len(positions):
            return {}
        data, counts, _ = added.columns
        may_have = self._patterns.candidates(added.rows, self._text, data, counts)
        may_have |= self._is_pending[added.rows]
        hits = positions[may_have[positions]].tolist()
        found: dict[int, CompletedStop] = {}
        for position in {*hits, *(wholes.keys() & set(positions.tolist()))}:
            stop = self._look(added, position, position in finished, wholes.get(position))
            if stop is not None:
                found[position] = stop
        # What was found in text that is withheld ends its request once that can be shown.
        self._is_pending[added.rows[hits]] = True
        self._advance(added, positions)
        return found

    def _look(
        self, added: Appended, position: int, is_finished: bool, whole: bytes | None
    ) -> CompletedStop | None:
        row = int(added.rows[position])
        params, stop, text = self._params[row], self._stop[row], self._text.read(row)
        shown = int(self._num_searched[row])
        before = int(added.num_before[position])
        for nth, end in enumerate(added.token_ends(position), 1):
            if end == shown or (self._raw and not _is_complete(text[:end])):
                continue
            if before + nth > params.min_tokens:
                found = find_stop(text[:end], end - shown, stop)
                if found is not None:
                    return CompletedStop(nth, text[: found[params.include_stop_str_in_output]])
            shown = end
        count = int(added.num_tokens[position])
        whole = text if whole is None else whole
        if not is_finished or before + count <= params.min_tokens or len(whole) == shown:
            return None
        found = find_stop(whole, len(whole) - shown, stop) if whole.startswith(text) else None
        if found is None:
            return None
        return CompletedStop(count, whole[: found[params.include_stop_str_in_output]])

    def _advance(self, added: Appended, positions: NDArray[np.intp]) -> None:
        """Count as searched what could be shown."""
        rows = added.rows[positions]
        used = self._text.used[rows]
        ends = character_ends(added, self._text, positions) if self._raw else used
        self._num_searched[rows] = np.maximum(self._num_searched[rows], ends)
        self._is_pending[rows[ends == used]] = False
