"""What follows the loop over requests: a pass over its outputs for each thing asked for."""

from typing import Any

import numpy as np

from engines.builtin.delivery import Delivered
from engines.builtin.delivery.outputs import RequestOutput
from engines.builtin.delivery.per_request import PerRequest
from engines.builtin.delivery.stage import LogprobsStage, Stages, Step, TextStage, end_early
from engines.builtin.logprobs import (
    LogprobsShape,
    RequestLogprobs,
    first_positions,
    load_logprobs,
)
from engines.builtin.registries import REQUEST_STREAMS
from engines.builtin.request_table import Request, RequestTable
from engines.builtin.text import Detokenizer, load_detokenizer
from engines.builtin.text.running_text import RunningText, TextUntilStop
from engines.protocol import EngineConfig, FinishReason


def per_request_stages(config: EngineConfig, tokens: PerRequest, table: RequestTable) -> Stages:
    """The stages that a configuration asks for; they find requests by number, not by row."""
    detokenizer = load_detokenizer(config)
    logprobs = load_logprobs(config.logprobs)
    streams = REQUEST_STREAMS.load(config.request_streams)
    return Stages(
        None if detokenizer is None else EachText(detokenizer, tokens),
        None if logprobs is None else EachLogprobs(logprobs),
        None if streams is None else streams(),
    )


class EachText(TextStage):
    """A `RunningText` a request, found by its number: a preemption changes nothing."""

    def __init__(self, detokenizer: Detokenizer, tokens: PerRequest) -> None:
        self._detokenizer = detokenizer
        self._tokens = tokens
        self._texts: dict[int, RunningText] = {}

    def admit(self, row: int, request: Request) -> None:
        """Begin with no text."""
        make = TextUntilStop if request.params.stop else RunningText
        text = make(self._detokenizer, request.params, self._tokens.token_list(row))
        self._texts[request.request_index] = text

    def process(self, step: Step) -> Delivered:
        """Decode each output's tokens; a stop string ends its request."""
        texts = self._texts
        stopped: list[int] = []
        num_kept: list[int] = []
        for nth, output in enumerate(step.delivered.outputs):
            completion: Any = output.outputs[0]
            text = texts[output.request_index]
            completion.text = text.take(completion.token_ids, completion.finish_reason)
            if text.num_kept:
                stopped.append(nth)
                num_kept.append(text.num_kept)
                _stop(output, text.num_kept)
        if not stopped:
            return step.delivered
        positions = np.flatnonzero(step.delivered.num_tokens)[stopped]
        return end_early(step.delivered, positions.tolist(), num_kept)

    def describe(self, row: int, output: RequestOutput) -> None:
        """Give it the text that has been shown."""
        completion: Any = output.outputs[0]
        completion.text = self._texts[output.request_index].so_far()

    def output_text(self, request_index: int) -> str:
        """A request's whole text, "" of one that never ran."""
        text = self._texts.get(request_index)
        return "" if text is None else text.whole()

    def forget(self, request_index: int) -> None:
        """Drop the text."""
        self._texts.pop(request_index, None)


def _stop(output: RequestOutput, num_kept: int) -> None:
    completion = output.outputs[0]
    completion.finish_reason = FinishReason.STOP
    if isinstance(completion.token_ids, list):
        completion.token_ids = completion.token_ids[:num_kept]
    output.finished = True


class EachLogprobs(LogprobsStage):
    """Each request's own, added to with each of its outputs."""

    def __init__(self, shape: LogprobsShape) -> None:
        self._shape = shape
        self._kept: dict[int, Any] = {}

    def admit(self, row: int, request: Request) -> None:
        """Begin with none."""
        self._kept[request.request_index] = self._shape.empty()

    def process(self, step: Step) -> Delivered:
        """Give each output the log-probabilities of its tokens."""
        num_tokens = step.delivered.num_tokens
        with_tokens = num_tokens > 0
        firsts = first_positions(step.logprobs.offsets, len(step.rows), step.valid)[with_tokens]
        each = self._shape.per_request(
            step.logprobs, firsts.tolist(), num_tokens[with_tokens].tolist()
        )
        for output, new in zip(step.delivered.outputs, each, strict=True):
            completion: Any = output.outputs[0]
            completion.logprobs = new
            self._kept[output.request_index].extend(new)
        return step.delivered

    def describe(self, row: int, output: RequestOutput) -> None:
        """Give it a copy of all so far."""
        completion: Any = output.outputs[0]
        completion.logprobs = self._shape.empty()
        completion.logprobs.extend(self._kept[output.request_index])

    def output_logprobs(self, request_index: int) -> RequestLogprobs:
        """All of a request's, none of one that never ran."""
        kept: RequestLogprobs = self._kept.get(request_index, self._shape.empty())
        return kept

    def forget(self, request_index: int) -> None:
        """Drop them."""
        self._kept.pop(request_index, None)
