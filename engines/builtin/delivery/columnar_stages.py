"""What follows the columns of tokens: columns of bytes and of log-probabilities."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.builtin.delivery import Delivered
from engines.builtin.delivery.columnar import Columnar, nth_in_row
from engines.builtin.delivery.outputs import RequestOutput
from engines.builtin.delivery.stage import LogprobsStage, Stages, Step
from engines.builtin.logprobs import RequestLogprobs, first_positions, parse_logprobs
from engines.builtin.logprobs.arrays import FlatLogprobs
from engines.builtin.request_table import Request, RequestTable
from engines.builtin.text import load_detokenizer
from engines.protocol import EngineConfig, Int32Array

_FIRST_WIDTH = 64


def columnar_stages(config: EngineConfig, tokens: Columnar, table: RequestTable) -> Stages:
    """The stages that a configuration asks for; `choice.contradiction` has ruled out others."""
    text = None
    if (detokenizer := load_detokenizer(config)) is not None:
        from engines.builtin.delivery.columnar_text import ColumnarText
        from engines.builtin.text.byte_table import ByteTable

        assert isinstance(detokenizer, ByteTable)
        text = ColumnarText(config, detokenizer, tokens, table)
    shape, num_logprobs = parse_logprobs(config.logprobs)
    logprobs = None if shape == "none" else ColumnarLogprobs(config, num_logprobs, table)
    return Stages(text, logprobs, None)


class _Columns(NamedTuple):
    token_ids: Int32Array
    logprobs: NDArray[np.float32]
    ranks: Int32Array

    def widened(self, width: int) -> "_Columns":
        more = (0, 0), (0, width - self.ranks.shape[1])
        return _Columns(
            np.pad(self.token_ids, (*more, (0, 0))),
            np.pad(self.logprobs, (*more, (0, 0))),
            np.pad(self.ranks, more),
        )


class ColumnarLogprobs(LogprobsStage):
    """``[max_num_seqs, output tokens, num_logprobs + 1]``, wider as outputs grow."""

    def __init__(self, config: EngineConfig, num_logprobs: int, table: RequestTable) -> None:
        shape = (config.max_num_seqs, _FIRST_WIDTH)
        self._table = table
        self._width = num_logprobs + 1
        self._columns = _Columns(
            np.zeros((*shape, self._width), np.int32),
            np.zeros((*shape, self._width), np.float32),
            np.zeros(shape, np.int32),
        )
        self._indices = np.zeros(config.max_num_seqs, np.int64)
        self._ended: dict[int, FlatLogprobs] = {}

    def admit(self, row: int, request: Request) -> None:
        """Note whose the row is."""
        self._indices[row] = request.request_index

    def process(self, step: Step) -> Delivered:
        """Store each row's positions behind those it has."""
        rows, num_tokens = step.rows, step.delivered.num_tokens
        firsts = first_positions(step.logprobs.offsets, len(rows), step.valid)
        places = self._table.num_output_tokens[rows].astype(np.intp)
        if not (num_tokens == 1).all():
            nth = nth_in_row(num_tokens)
            rows = np.repeat(rows, num_tokens)
            firsts, places = (np.repeat(each, num_tokens) + nth for each in (firsts, places))
        self._widen(int(places.max(initial=0)) + 1)
        for column, new in zip(self._columns, step.logprobs[:3], strict=True):
            column[rows, places] = new[firsts]
        return step.delivered

    def _widen(self, most: int) -> None:
        width = self._columns.ranks.shape[1]
        if most > width:
            while width < most:
                width *= 2
            self._columns = self._columns.widened(width)

    def _read(self, row: int) -> FlatLogprobs:
        count = self._table.num_output_tokens[row]
        return FlatLogprobs(self._width, *(each[row, :count].tobytes() for each in self._columns))

    def suspend(self, row: int) -> FlatLogprobs:
        """A copy; it can be asked for meanwhile."""
        self.retire(row)
        return self._ended[int(self._indices[row])]

    def resume(self, row: int, request: Request, suspended: FlatLogprobs) -> None:
        """Put them on the row."""
        self.admit(row, request)
        self.forget(request.request_index)
        if not (count := len(suspended)):
            return
        self._widen(count)
        for column, own in zip(
            self._columns, (suspended.token_ids, suspended.logprobs, suspended.ranks), strict=True
        ):
            values = np.frombuffer(own, column.dtype)
            column[row, :count] = values.reshape(column[row, :count].shape)

    def retire(self, row: int) -> None:
        """A copy: the next owner writes over the row."""
        self._ended[int(self._indices[row])] = self._read(row)

    def describe(self, row: int, output: RequestOutput) -> None:
        """Give it a copy of all so far."""
        completion = output.outputs[0]
        completion.logprobs = self._read(row)  # type: ignore[attr-defined]

    def output_logprobs(self, request_index: int) -> RequestLogprobs:
        """All of a request's, none of one that never ran."""
        nothing = FlatLogprobs(self._width, b"", b"", b"")
        return self._ended.get(request_index, nothing)

    def forget(self, request_index: int) -> None:
        """Drop them."""
        self._ended.pop(request_index, None)
