"""What is done to a step's outputs once their tokens are known, one thing a stage."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engines.builtin.delivery import Delivered
from engines.builtin.delivery.outputs import RequestOutput
from engines.builtin.request_table import Request
from engines.protocol import BoolArray, FinishReason, Int32Array

if TYPE_CHECKING:
    from engines.builtin.delivery.collector import RequestOutputCollector
    from engines.builtin.logprobs import RequestLogprobs


class Step(NamedTuple):
    """A step as a stage sees it; ``rows`` are those that ``valid`` leaves, ``logprobs`` are all."""

    rows: Int32Array
    delivered: Delivered
    valid: BoolArray | None
    logprobs: Any


class Stage:
    """One thing that is done to each step. What is not overridden needs nothing done."""

    def admit(self, row: int, request: Request) -> None:
        """Start a request."""

    def process(self, step: Step) -> Delivered:
        """Do it; what is delivered may come out changed."""
        return step.delivered

    def suspend(self, row: int) -> Any:
        """Take what is kept by row off it."""

    def resume(self, row: int, request: Request, suspended: Any) -> None:
        """Put it on another row."""

    def retire(self, row: int) -> None:
        """The row's request has ended; keep what may be asked for until it is forgotten."""

    def describe(self, row: int, output: RequestOutput) -> None:
        """Fill in a running request's output so far."""

    def forget(self, request_index: int) -> None:
        """Let go of a request that has ended."""


class TextStage(Stage):
    """Makes text."""

    def output_text(self, request_index: int) -> str:
        """A request's whole text."""
        raise NotImplementedError


class LogprobsStage(Stage):
    """Keeps log-probabilities."""

    def output_logprobs(self, request_index: int) -> "RequestLogprobs":
        """All of a request's."""
        raise NotImplementedError


class StreamStage(Stage):
    """Hands outputs to streams."""

    def request_stream(self, request_index: int) -> "RequestOutputCollector":
        """A request's."""
        raise NotImplementedError


class Stages(NamedTuple):
    """Those that a configuration asks for, in the order of their work."""

    text: TextStage | None
    logprobs: LogprobsStage | None
    streams: StreamStage | None


def end_early(delivered: Delivered, positions: Sequence[int], num_kept: Sequence[int]) -> Delivered:
    """The rows at ``positions`` have ended by `FinishReason.STOP`, with so many tokens."""
    if not positions:
        return delivered
    num_tokens = delivered.num_tokens.copy()
    num_tokens[positions] = num_kept
    reasons = np.full(len(num_tokens), -1, np.int8)
    reasons[delivered.finished] = delivered.reasons
    reasons[positions] = FinishReason.STOP
    finished = np.flatnonzero(reasons >= 0).astype(np.int32)
    return delivered._replace(num_tokens=num_tokens, finished=finished, reasons=reasons[finished])
