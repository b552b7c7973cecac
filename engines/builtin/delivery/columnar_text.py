"""Text of the whole batch: bytes appended to rows, decoded when somebody asks."""

from typing import NamedTuple

import numpy as np

from engines.builtin.delivery import Delivered
from engines.builtin.delivery.columnar import Columnar
from engines.builtin.delivery.columnar_stops import Appended, ColumnarStops
from engines.builtin.delivery.outputs import RequestOutput
from engines.builtin.delivery.stage import Step, TextStage, end_early
from engines.builtin.request_table import Request, RequestTable
from engines.builtin.text import REPLACEMENT
from engines.builtin.text.byte_columns import ByteColumns
from engines.builtin.text.byte_fallback import ByteFallbackStream
from engines.builtin.text.byte_table import ByteTable
from engines.builtin.text.row_bytes import RowBytes
from engines.protocol import EngineConfig, FinishReason, Int32Array


class _Suspended(NamedTuple):
    text: bytes
    num_searched: int
    stream: ByteFallbackStream | None


class ColumnarText(TextStage):
    """A row of bytes a request, with those of byte-level tokens as they come, UTF-8 or not."""

    def __init__(
        self, config: EngineConfig, detokenizer: ByteTable, tokens: Columnar, table: RequestTable
    ) -> None:
        num_rows = config.max_num_seqs
        self._detokenizer = detokenizer
        self._tokens = tokens
        self._table = table
        self._columns = ByteColumns(detokenizer, num_rows)
        self._odd = self._columns.odd
        self._text = RowBytes(num_rows)
        self._stops = ColumnarStops(num_rows, self._text, raw=self._odd is None)
        self._includes_stop = np.zeros(num_rows, np.bool_)
        self._indices = np.zeros(num_rows, np.int64)
        self._ended: dict[int, bytes] = {}

    def admit(self, row: int, request: Request) -> None:
        """Begin with no bytes."""
        self.resume(row, request, _Suspended(b"", 0, None))
        if self._odd is not None:
            self._odd.start(row)

    def process(self, step: Step) -> Delivered:
        """Append the bytes of all tokens, then look for stop strings in what is new."""
        rows, delivered = step.rows, step.delivered
        num_tokens, num_before = delivered.num_tokens, self._table.num_output_tokens[step.rows]
        decoded = self._decoded(rows, delivered)
        token_ids = self._tokens.delivered(rows, num_tokens)
        columns = self._columns.gather(rows, token_ids, num_tokens, decoded)
        num_bytes_before = self._text.used[rows]
        self._text.append(rows, columns.data, columns.counts)
        wholes: dict[int, bytes] = {}
        if self._odd is not None:
            for position in delivered.finished.tolist():
                count = int(num_before[position] + decoded[position])
                if (whole := self._whole(int(rows[position]), count)) is not None:
                    wholes[position] = whole
        added = Appended(rows, num_tokens, decoded, num_before, num_bytes_before, columns)
        stopped = self._stops.find(added, delivered.finished.tolist(), wholes)
        for position, text in (wholes | {at: stop.text for at, stop in stopped.items()}).items():
            row = int(rows[position])
            self._text.write(row, text)
            if self._odd is not None:
                self._odd.take(row)
        return end_early(delivered, list(stopped), [stop.num_tokens for stop in stopped.values()])

    def _decoded(self, rows: Int32Array, delivered: Delivered) -> Int32Array:
        """Tokens of each row that have text: a token that stops its request has none."""
        by_token = delivered.finished[delivered.reasons == FinishReason.STOP]
        by_token = by_token[~self._includes_stop[rows[by_token]]]
        if not len(by_token):
            return delivered.num_tokens
        decoded = delivered.num_tokens.copy()
        decoded[by_token] -= 1
        return decoded

    def _whole(self, row: int, num_tokens: int) -> bytes | None:
        """A row's whole text, if its bytes are not."""
        stream = self._odd.take(row) if self._odd is not None else None
        if stream is None or stream.exact:
            return None
        token_ids = self._tokens.first_tokens(row, num_tokens).tolist()
        return self._detokenizer.decode(token_ids).encode()

    def suspend(self, row: int) -> _Suspended:
        """The bytes; what they say can be asked for meanwhile."""
        text, num_searched = self._text.read(row), int(self._stops.num_searched[row])
        stream = self._odd.take(row) if self._odd is not None else None
        if self._odd is not None:
            self._odd.put(row, stream)
        self.retire(row)
        return _Suspended(text, num_searched, stream)

    def resume(self, row: int, request: Request, suspended: _Suspended) -> None:
        """Put the bytes on the row."""
        self._ended.pop(request.request_index, None)
        self._indices[row] = request.request_index
        self._includes_stop[row] = request.params.include_stop_str_in_output
        self._text.write(row, suspended.text)
        self._stops.put(row, request.params, suspended.num_searched)
        if self._odd is not None:
            self._odd.put(row, suspended.stream)

    def retire(self, row: int) -> None:
        """A copy of the bytes: the next owner writes over the row."""
        whole = self._whole(row, int(self._table.num_output_tokens[row]))
        self._ended[int(self._indices[row])] = self._text.read(row) if whole is None else whole

    def describe(self, row: int, output: RequestOutput) -> None:
        """Give it the text up to where it may still change."""
        completion = output.outputs[0]
        text = self._text.read(row).decode(errors="replace").rstrip(REPLACEMENT)
        text = text[: max(0, len(text) - self._stops.num_withheld(row))]
        completion.text = text  # type: ignore[attr-defined]

    def output_text(self, request_index: int) -> str:
        """A request's whole text, "" of one that never ran."""
        return self._ended.get(request_index, b"").decode(errors="replace")

    def forget(self, request_index: int) -> None:
        """Drop the text."""
        self._ended.pop(request_index, None)
