"""A lean loop over requests: each gets its own tokens and a small output object."""

from collections.abc import Iterable, Sequence
from itertools import compress, repeat
from typing import Any

import numpy as np

from engines.builtin.delivery import Delivery
from engines.builtin.delivery.outputs import CompletionOutput, DetailedOutput, RequestOutput
from engines.builtin.delivery.stage import (
    LogprobsStage,
    Processed,
    Stage,
    Stages,
    StepTokens,
    TextStage,
    each_reason,
    end_early,
)
from engines.builtin.logprobs import LogprobsShape, RequestLogprobs, first_positions, load_logprobs
from engines.builtin.registries import REQUEST_STREAMS
from engines.builtin.request_table import Request
from engines.builtin.text import Detokenizer, load_detokenizer
from engines.builtin.text.running_text import RunningText, TextUntilStop
from engines.builtin.token_store.lists import TokenLists
from engines.protocol import EngineConfig, Int32Array


def per_request_stages(config: EngineConfig) -> Stages:
    """Text first, then an object a request and step with it; log-probabilities are put into it."""
    detokenizer = load_detokenizer(config)
    logprobs = load_logprobs(config.logprobs)
    streams = REQUEST_STREAMS.load(config.request_streams)
    is_plain = detokenizer is None and logprobs is None and streams is None
    return Stages(
        None if detokenizer is None else EachText(detokenizer),
        EachOutput(CompletionOutput if is_plain else DetailedOutput),
        None if logprobs is None else EachLogprobs(logprobs),
    )


class EachText(TextStage):
    """A `RunningText` a request."""

    def __init__(self, detokenizer: Detokenizer) -> None:
        self._detokenizer = detokenizer
        self._texts: dict[int, RunningText] = {}

    def add(self, request: Request) -> None:
        """Begin with no text."""
        make = TextUntilStop if request.params.stop else RunningText
        self._texts[request.slot] = make(self._detokenizer, request.params)

    def process(self, step: StepTokens, processed: Processed) -> None:
        """Decode each row's tokens; a stop string ends its request."""
        texts = list(map(self._texts.__getitem__, step.slots.tolist()))
        rows = zip(texts, step.tokens, each_reason(processed), strict=True)
        processed.texts = [text.take(tokens, reason) for text, tokens, reason in rows]
        stopped = [position for position, text in enumerate(texts) if text.num_kept]
        end_early(processed, stopped, [texts[position].num_kept for position in stopped])

    def text(self, slot: int) -> str:
        """A request's whole text."""
        return self._texts[slot].text

    def num_tokens(self, slot: int) -> int | None:
        """Those up to a stop string, if it looks for any."""
        return self._texts[slot].num_tokens

    def remove(self, slot: int) -> None:
        """Drop the text."""
        del self._texts[slot]


class EachOutput(Stage):
    """Makes the objects. ``completion`` is called with index, tokens, reason and text, if any."""

    def __init__(self, completion: type[CompletionOutput]) -> None:
        self._completion = completion
        self._prompts: dict[int, Int32Array] = {}

    def add(self, request: Request) -> None:
        """Each output names its prompt."""
        self._prompts[request.slot] = request.prompt_token_ids

    def process(self, step: StepTokens, processed: Processed) -> None:
        """An object a row that got tokens, in a loop."""
        columns: list[Sequence[Any]] = [
            step.slots.tolist(),
            step.request_index.tolist(),
            each_reason(processed),
            _each_tokens(step, processed),
        ]
        if processed.texts:
            columns.append(processed.texts)
        if not step.num_tokens.all():
            has_tokens = (step.num_tokens > 0).tolist()
            columns = [list(compress(column, has_tokens)) for column in columns]
        slots, indices, reasons, tokens, *texts = columns
        prompts = map(self._prompts.__getitem__, slots)
        completions = map(self._completion, repeat(0), tokens, reasons, *texts)
        processed.outputs = [
            RequestOutput(index, prompt, [completion], reason is not None)
            for index, prompt, completion, reason in zip(
                indices, prompts, completions, reasons, strict=True
            )
        ]

    def remove(self, slot: int) -> None:
        """Drop the prompt."""
        del self._prompts[slot]


def _each_tokens(step: StepTokens, processed: Processed) -> list[int | list[int]]:
    """Each row's tokens, without those behind a stop string."""
    each: list[int | list[int]] = step.tokens
    cut = np.flatnonzero(processed.num_tokens < step.num_tokens).tolist()
    if cut:
        each = list(each)
    for position in cut:
        tokens = each[position]
        assert isinstance(tokens, list)
        each[position] = tokens[: processed.num_tokens[position]]
    return each


def logprobs_of_each(
    shape: LogprobsShape, step: StepTokens, num_tokens: Int32Array
) -> Iterable[RequestLogprobs]:
    """Of each row that keeps tokens of the step, ``num_tokens`` of them."""
    has_tokens = num_tokens > 0
    firsts = first_positions(step.logprobs.offsets, len(num_tokens), step.valid)[has_tokens]
    return shape.per_request(step.logprobs, firsts.tolist(), num_tokens[has_tokens].tolist())


class EachLogprobs(LogprobsStage):
    """Each request's own, added to with each of its outputs."""

    def __init__(self, shape: LogprobsShape) -> None:
        self._shape = shape
        self._kept: dict[int, Any] = {}

    def add(self, request: Request) -> None:
        """Begin with none."""
        self._kept[request.slot] = self._shape.empty()

    def process(self, step: StepTokens, processed: Processed) -> None:
        """Give each output the log-probabilities of its tokens."""
        num_tokens = processed.num_tokens
        each = logprobs_of_each(self._shape, step, num_tokens)
        slots = step.slots[num_tokens > 0].tolist()
        for slot, output, new in zip(slots, processed.outputs, each, strict=True):
            output.outputs[0].logprobs = new
            self._kept[slot].extend(new)

    def logprobs(self, slot: int) -> RequestLogprobs:
        """All of a request's."""
        kept: RequestLogprobs = self._kept[slot]
        return kept

    def remove(self, slot: int) -> None:
        """Drop them."""
        del self._kept[slot]


PER_REQUEST = Delivery(False, list[int | list[int]], TokenLists, per_request_stages)
