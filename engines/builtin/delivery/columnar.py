"""The whole batch at once; an upper bound, unless clients get outputs by --axis request-streams."""

from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.builtin.columns import nth_in_row, sliced, with_rows
from engines.builtin.delivery import Delivery
from engines.builtin.delivery.outputs import OutputChunk
from engines.builtin.delivery.per_request import logprobs_of_each
from engines.builtin.delivery.stage import (
    LogprobsStage,
    Processed,
    Stage,
    Stages,
    StepTokens,
    each_reason,
)
from engines.builtin.logprobs import RequestLogprobs, first_positions, parse_logprobs
from engines.builtin.logprobs.arrays import ArrayLogprobs, FlatLogprobs
from engines.builtin.registries import REQUEST_STREAMS
from engines.builtin.request_table import Request
from engines.builtin.text import load_detokenizer
from engines.builtin.token_store.matrix import TokenMatrix
from engines.protocol import EngineConfig, Int32Array

_FIRST_WIDTH = 64
_SHAPE = ArrayLogprobs()


def columnar_stages(config: EngineConfig) -> Stages:
    """What a configuration asks for; `choice.delivery_contradiction` has ruled out the rest."""
    has_clients = REQUEST_STREAMS.load(config.request_streams) is not None
    text = None
    if (detokenizer := load_detokenizer(config)) is not None:
        from engines.builtin.delivery.columnar_text import ColumnarText
        from engines.builtin.text.byte_table import ByteTable

        assert isinstance(detokenizer, ByteTable)
        text = ColumnarText(config, detokenizer, shows=has_clients)
    shape, num_logprobs = parse_logprobs(config.logprobs)
    logprobs = None if shape == "none" else ColumnarLogprobs(config, num_logprobs)
    return Stages(text, OutputChunks() if has_clients else None, logprobs)


class OutputChunks(Stage):
    """For each row with tokens its piece of the step's columns."""

    def process(self, step: StepTokens, processed: Processed) -> None:
        """One buffer of tokens, as there is one of text; each chunk has its slices."""
        num_tokens, token_ids = processed.num_tokens, step.tokens
        if num_tokens is not step.num_tokens:  # some have ended at a stop string
            kept = nth_in_row(step.num_tokens) < np.repeat(num_tokens, step.num_tokens)
            token_ids = token_ids[kept]
        columns: list[Sequence[Any]] = [
            step.request_index.tolist(),
            each_reason(processed),
            sliced(token_ids.tobytes(), 4 * num_tokens.astype(np.int64)),
        ]
        if processed.texts:
            columns.append(processed.texts)
        if not num_tokens.all():
            has_tokens = (num_tokens > 0).tolist()
            columns = [list(compress(column, has_tokens)) for column in columns]
        processed.outputs = list(map(OutputChunk, *columns))


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
    """``[slots, output tokens, num_logprobs + 1]``, wider as outputs grow."""

    def __init__(self, config: EngineConfig, num_logprobs: int) -> None:
        shape = (config.max_num_seqs, _FIRST_WIDTH)
        self._width = num_logprobs + 1
        self._columns = _Columns(
            np.zeros((*shape, self._width), np.int32),
            np.zeros((*shape, self._width), np.float32),
            np.zeros(shape, np.int32),
        )
        self._num_tokens = np.zeros(config.max_num_seqs, np.int32)

    def add(self, request: Request) -> None:
        """Begin with none."""
        slot = request.slot
        self._columns = _Columns(*(with_rows(each, slot + 1) for each in self._columns))
        self._num_tokens = with_rows(self._num_tokens, slot + 1)
        self._num_tokens[slot] = 0

    def process(self, step: StepTokens, processed: Processed) -> None:
        """Store each row's positions behind those it has."""
        slots, num_tokens = step.slots, processed.num_tokens
        firsts = first_positions(step.logprobs.offsets, len(slots), step.valid)
        places = self._num_tokens[slots].astype(np.intp)
        self._num_tokens[slots] += num_tokens
        if not (num_tokens == 1).all():
            nth = nth_in_row(num_tokens)
            slots = np.repeat(slots, num_tokens)
            firsts, places = (np.repeat(each, num_tokens) + nth for each in (firsts, places))
        self._widen(int(places.max(initial=0)) + 1)
        for column, new in zip(self._columns, step.logprobs[:3], strict=True):
            column[slots, places] = new[firsts]
        if processed.outputs:
            each = logprobs_of_each(_SHAPE, step, num_tokens)
            for output, own in zip(processed.outputs, each, strict=True):
                output.outputs[0].logprobs = own

    def _widen(self, most: int) -> None:
        width = self._columns.ranks.shape[1]
        if most > width:
            while width < most:
                width *= 2
            self._columns = self._columns.widened(width)

    def logprobs(self, slot: int) -> RequestLogprobs:
        """A copy: the next owner writes over the slot."""
        count = self._num_tokens[slot]
        return FlatLogprobs(self._width, *(each[slot, :count].tobytes() for each in self._columns))


COLUMNAR = Delivery(True, Any, TokenMatrix, columnar_stages)
