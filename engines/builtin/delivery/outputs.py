"""What a request is told of its tokens: one object a request and step, as in vLLM."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engines.protocol import FinishReason, Int32Array

if TYPE_CHECKING:
    from engines.builtin.logprobs import RequestLogprobs


@dataclass(slots=True)
class CompletionOutput:
    """The tokens of one completion; named and shaped as in vLLM. Tracked by the collector."""

    index: int
    token_ids: int | list[int]
    finish_reason: FinishReason | None


@dataclass(slots=True)
class DetailedOutput(CompletionOutput):
    """With what output processing adds: the text to show and the log-probabilities, if any."""

    text: str = ""
    logprobs: "RequestLogprobs | None" = None


@dataclass(slots=True)
class RequestOutput:
    """What vLLM's front end makes for a request in each step. Tracked by the collector."""

    request_index: int
    prompt_token_ids: Int32Array
    outputs: list[CompletionOutput]
    finished: bool
