"""A lean loop over requests: each gets its own tokens and a small output object."""

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
    end_early,
)
from engines.builtin.logprobs import (
    LogprobsShape,
    RequestLogprobs,
    first_positions,
    load_logprobs,
)
from engines.builtin.registries import REQUEST_STREAMS
from engines.builtin.request_table import Request
from engines.builtin.text import Detokenizer, load_detokenizer
from engines.builtin.text.running_text import RunningText, TextUntilStop
from engines.builtin.token_store.lists import TokenLists
from engines.protocol import EngineConfig, FinishReason, Int32Array


def per_request_stages(config: EngineConfig) -> Stages:
    """An object a request and step, then a pass over them for each thing asked for."""
    detokenizer = load_detokenizer(config)
    logprobs = load_logprobs(config.logprobs)
    streams = REQUEST_STREAMS.load(config.request_streams)
    is_plain = detokenizer is None and logprobs is None and streams is None
    return Stages(
        EachOutput(CompletionOutput if is_plain else DetailedOutput),
        None if detokenizer is None else EachText(detokenizer),
        None if logprobs is None else EachLogprobs(logprobs),
    )


class EachOutput(Stage):
    """Makes the objects. ``completion`` is called with index, tokens and reason."""

    def __init__(self, completion: type[CompletionOutput]) -> None:
        self._completion = completion
        self._prompts: dict[int, Int32Array] = {}

    def add(self, request: Request) -> None:
        """Each output names its prompt."""
        self._prompts[request.slot] = request.prompt_token_ids

    def process(self, step: StepTokens, processed: Processed) -> None:
        """An object a row that got tokens, in a loop."""
        make_completion = self._completion
        slots, indices, tokens, places = step.slots, step.request_index, step.tokens, step.finished
        if not step.num_tokens.all():
            has_tokens = step.num_tokens > 0
            slots, indices = slots[has_tokens], indices[has_tokens]
            tokens = [tokens[place] for place in np.flatnonzero(has_tokens).tolist()]
            places = (np.cumsum(has_tokens) - 1)[places]
        prompts = map(self._prompts.__getitem__, slots.tolist())
        outputs = [
            RequestOutput(index, prompt, [make_completion(0, new, None)], False)
            for index, prompt, new in zip(indices.tolist(), prompts, tokens, strict=True)
        ]
        for place, reason in zip(places.tolist(), step.reasons.tolist(), strict=True):
            _finish(outputs[place], FinishReason(reason))
        processed.outputs = outputs

    def remove(self, slot: int) -> None:
        """Drop the prompt."""
        del self._prompts[slot]


def _finish(output: RequestOutput, reason: FinishReason) -> None:
    output.finished = True
    output.outputs[0].finish_reason = reason


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
        """Decode each output's tokens; a stop string ends its request."""
        slots = step.slots[step.num_tokens > 0].tolist()
        stopped: list[int] = []
        num_kept: list[int] = []
        for nth, (text, output) in enumerate(
            zip(map(self._texts.__getitem__, slots), processed.outputs, strict=True)
        ):
            completion: Any = output.outputs[0]
            completion.text = text.take(completion.token_ids, completion.finish_reason)
            if text.num_kept:
                stopped.append(nth)
                num_kept.append(text.num_kept)
                _finish(output, FinishReason.STOP)
                if isinstance(completion.token_ids, list):
                    completion.token_ids = completion.token_ids[: text.num_kept]
        if stopped:
            positions = np.flatnonzero(step.num_tokens)[stopped]
            end_early(processed, positions.tolist(), num_kept)

    def text(self, slot: int) -> str:
        """A request's whole text."""
        return self._texts[slot].text

    def num_tokens(self, slot: int) -> int:
        """As many as it has decoded."""
        return len(self._texts[slot].token_ids)

    def remove(self, slot: int) -> None:
        """Drop the text."""
        del self._texts[slot]


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
        has_tokens = num_tokens > 0
        firsts = first_positions(step.logprobs.offsets, len(num_tokens), step.valid)[has_tokens]
        each = self._shape.per_request(
            step.logprobs, firsts.tolist(), num_tokens[has_tokens].tolist()
        )
        slots = step.slots[has_tokens].tolist()
        for slot, output, new in zip(slots, processed.outputs, each, strict=True):
            completion: Any = output.outputs[0]
            completion.logprobs = new
            self._kept[slot].extend(new)

    def logprobs(self, slot: int) -> RequestLogprobs:
        """All of a request's."""
        kept: RequestLogprobs = self._kept[slot]
        return kept

    def remove(self, slot: int) -> None:
        """Drop them."""
        del self._kept[slot]


PER_REQUEST = Delivery(False, list[int | list[int]], TokenLists, per_request_stages)
