"""From vLLM's `RequestOutput` objects to columns, and each request's tokens until it is read."""

from typing import Any

import numpy as np

from engines.protocol import Delivered, FinishReason, Int32Array, StepOutput

_REASONS = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH, "abort": FinishReason.ABORT}


class Outputs:
    """The consumer's side of the front end: outputs come as deltas, one a request and step.

    ``has_text``: vLLM detokenizes. Where it does not nobody looks for a text, which would be work
    of ours in each request's step. ``has_samples``: a request may have several outputs in a step,
    of which the first sample's are its own.
    """

    def __init__(self, has_text: bool, has_samples: bool = False) -> None:
        self._has_text = has_text
        self._has_samples = has_samples
        self._tokens: dict[int, list[int]] = {}
        self._texts: dict[int, str] = {}

    def admit(self, request_index: int) -> None:
        """Start a request's output."""
        self._tokens[request_index] = []

    def take(self, request_outputs: list[Any], processing_ns: int, **device: Any) -> StepOutput:
        """A step's outputs as columns; ``processing_ns``: how long vLLM's output processor took;
        ``device`` are the fields that its device fills.
        """
        request_index: list[int] = []
        num_tokens: list[int] = []
        finished: list[int] = []
        reasons: list[int] = []
        tokens = self._tokens
        if self._has_samples:
            request_outputs = _of_first_samples(request_outputs)
        for output in request_outputs:
            completion = output.outputs[0]
            index = int(output.request_id)
            tokens[index] += completion.token_ids
            request_index.append(index)
            num_tokens.append(len(completion.token_ids))
            if output.finished:
                finished.append(index)
                reasons.append(_reason(index, completion.finish_reason))
        if self._has_text:
            self._take_texts(request_index, request_outputs)
        delivered = Delivered(
            np.array(request_index, np.int64),
            np.array(num_tokens, np.int32),
            request_outputs,
            np.array(finished, np.int64),
            np.array(reasons, np.int8),
            processing_ns,
        )
        return StepOutput((delivered,), **device)

    def _take_texts(self, request_index: list[int], request_outputs: list[Any]) -> None:
        for index, output in zip(request_index, request_outputs, strict=True):
            if text := output.outputs[0].text:
                self._texts[index] = self._texts.get(index, "") + text

    def text(self, request_index: int) -> str:
        """A request's text, until its tokens are taken."""
        return self._texts.get(request_index, "")

    def pop(self, request_index: int) -> Int32Array:
        """A request's tokens, int32 ``[num_output]``; forgotten here, and its text."""
        self._texts.pop(request_index, None)
        return np.array(self._tokens.pop(request_index), np.int32)


def _of_first_samples(request_outputs: list[Any]) -> list[Any]:
    """One a request, which ends with the last of its samples."""
    of: dict[Any, Any] = {}
    for output in request_outputs:
        completion = output.outputs[0]
        first = of.setdefault(output.request_id, output)
        if completion.index == 0:
            output.finished = output.finished or first.finished
            of[output.request_id] = output
        else:
            first.finished = first.finished or output.finished
            completion.token_ids, completion.text = [], ""
    return list(of.values())


def _reason(request_index: int, text: str) -> FinishReason:
    if text not in _REASONS:
        raise ValueError(
            f"vLLM ended request {request_index} with {text!r}; expected {', '.join(_REASONS)}"
        )
    return _REASONS[text]
