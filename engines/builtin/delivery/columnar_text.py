"""Text of the whole batch: bytes appended to rows, decoded when somebody asks."""

import numpy as np

from engines.builtin.columns import with_rows
from engines.builtin.delivery.columnar_shown import ShownText
from engines.builtin.delivery.columnar_stops import Appended, ColumnarStops
from engines.builtin.delivery.stage import Processed, StepTokens, TextStage, end_early
from engines.builtin.request_table import Request
from engines.builtin.text.byte_columns import ByteColumns
from engines.builtin.text.byte_table import ByteTable
from engines.builtin.text.row_bytes import RowBytes
from engines.protocol import EngineConfig, FinishReason, Int32Array


class ColumnarText(TextStage):
    """A row of bytes a slot, with those of byte-level tokens as they come, UTF-8 or not.

    ``shows``: whether clients are to get what is new of it with each step.
    """

    def __init__(self, config: EngineConfig, detokenizer: ByteTable, *, shows: bool) -> None:
        num_rows = config.max_num_seqs
        self._detokenizer = detokenizer
        self._columns = ByteColumns(detokenizer, num_rows)
        self._odd = self._columns.odd
        self._token_bytes = RowBytes(0 if self._odd is None else num_rows)
        self._text = RowBytes(num_rows)
        self._stops = ColumnarStops(num_rows, self._text, raw=self._odd is None)
        self._shown = ShownText(num_rows, self._text, raw=self._odd is None) if shows else None
        self._includes_stop = np.zeros(num_rows, np.bool_)
        self._num_tokens = np.zeros(num_rows, np.int32)

    def add(self, request: Request) -> None:
        """Begin with no bytes."""
        slot = request.slot
        self._reserve(slot + 1)
        self._includes_stop[slot] = request.params.include_stop_str_in_output
        self._num_tokens[slot] = 0
        self._text.write(slot, b"")
        self._stops.put(slot, request.params)
        if self._shown is not None:
            self._shown.put(slot, request.params)
        if self._odd is not None:
            self._token_bytes.write(slot, b"")
            self._odd.start(slot)

    def _reserve(self, num_rows: int) -> None:
        self._includes_stop = with_rows(self._includes_stop, num_rows)
        self._num_tokens = with_rows(self._num_tokens, num_rows)
        self._text.reserve(num_rows)
        self._stops.reserve(num_rows)
        if self._shown is not None:
            self._shown.reserve(num_rows)
        if self._odd is not None:
            self._token_bytes.reserve(num_rows)
            self._odd.reserve(num_rows)

    def process(self, step: StepTokens, processed: Processed) -> None:
        """Append the bytes of all tokens, then look for stop strings in what is new."""
        slots, num_tokens = step.slots, step.num_tokens
        num_before = self._num_tokens[slots]
        decoded = self._decoded(step)
        columns = self._columns.gather(slots, step.tokens, num_tokens, decoded)
        num_bytes_before = self._text.used[slots]
        self._text.append(slots, columns.data, columns.counts)
        wholes: dict[int, bytes] = {}
        if self._odd is not None:
            self._token_bytes.append(slots, step.tokens.view(np.uint8), num_tokens * np.int64(4))
            for position in step.finished.tolist():
                count = int(num_before[position] + decoded[position])
                if (whole := self._whole(int(slots[position]), count)) is not None:
                    wholes[position] = whole
        added = Appended(slots, num_tokens, decoded, num_before, num_bytes_before, columns)
        stopped = self._stops.find(added, step.finished.tolist(), wholes)
        instead = self._unlike_shown(
            slots, {at: wholes[at] for at in wholes.keys() - stopped.keys()}
        )
        for position, text in (wholes | {at: stop.text for at, stop in stopped.items()}).items():
            self._text.write(int(slots[position]), text)
        end_early(processed, list(stopped), [stop.num_tokens for stop in stopped.values()])
        self._num_tokens[slots] += processed.num_tokens
        if self._shown is not None:
            processed.texts = self._shown.take(added, processed.finished, instead)

    def _unlike_shown(self, slots: Int32Array, wholes: dict[int, bytes]) -> dict[int, bytes]:
        """What to show at the end of texts that do not begin with what was shown of them."""
        if self._shown is None:
            return {}
        return {
            position: b"" if self._stops.has_stop(slot) else self._shown.rest(slot)
            for position, whole in wholes.items()
            if not whole.startswith(self._text.read(slot := int(slots[position])))
        }

    def _decoded(self, step: StepTokens) -> Int32Array:
        """Tokens of each row that have text: a token that stops its request has none."""
        by_token = step.finished[step.reasons == FinishReason.STOP]
        by_token = by_token[~self._includes_stop[step.slots[by_token]]]
        if not len(by_token):
            return step.num_tokens
        decoded = step.num_tokens.copy()
        decoded[by_token] -= 1
        return decoded

    def _whole(self, slot: int, num_tokens: int) -> bytes | None:
        """A request's whole text, if its bytes are not."""
        assert self._odd is not None
        stream = self._odd.take(slot)
        if stream is None or stream.exact:
            return None
        token_ids = np.frombuffer(self._token_bytes.read(slot), np.int32)[:num_tokens].tolist()
        return self._detokenizer.decode(token_ids).encode()

    def text(self, slot: int) -> bytes:
        """Its bytes."""
        return self._text.read(slot)

    def num_tokens(self, slot: int) -> int:
        """As counted."""
        return int(self._num_tokens[slot])

    def remove(self, slot: int) -> None:
        """Let go of what is not written over."""
        if self._odd is not None:
            self._odd.take(slot)
