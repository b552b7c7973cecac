"""What is done to a step's tokens once the scheduler's side has taken them; one thing a stage."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.builtin.delivery.outputs import Output
from engines.builtin.request_table import Request
from engines.protocol import BoolArray, FinishReason, Int32Array, Int64Array

if TYPE_CHECKING:
    from engines.builtin.logprobs import RequestLogprobs


class StepTokens(NamedTuple):
    """A step's tokens as the token store has taken them, a row a request.

    ``slots`` int32 ``[num_rows]`` and ``request_index`` int64 ``[num_rows]``: whose;
    ``num_tokens`` int32 ``[num_rows]``; ``finished`` int32 positions and ``reasons`` int8: who has
    ended with it, and why. ``tokens`` as `Taken.tokens`. ``logprobs`` are those of all rows that
    the runner had, of which ``valid`` bool leaves these.
    """

    slots: Int32Array
    request_index: Int64Array
    num_tokens: Int32Array
    finished: Int32Array
    reasons: NDArray[np.int8]
    tokens: Any
    valid: BoolArray | None
    logprobs: Any


class EndedOutput(NamedTuple):
    """What is left of a request's output beside its tokens, None where nothing was asked for.

    ``num_tokens``: those before a stop string's end included; None: all that were taken.
    """

    num_tokens: int | None
    text: str | bytes | None
    logprobs: "RequestLogprobs | None"


@dataclass(slots=True)
class Processed:
    """What the stages have made of a step; each changes it where it has something to add.

    ``texts``: what to show of each row, bytes as in `OutputChunk`, or none at all. ``outputs``: one
    a row with tokens, or none at all. ``ended``: of each in ``finished``, or none at all.
    ``processing_ns`` and ``ready_ns`` as in `Delivered`.
    """

    step: StepTokens
    num_tokens: Int32Array
    finished: Int32Array
    reasons: NDArray[np.int8]
    texts: Sequence[str] | Sequence[bytes] = ()
    outputs: Sequence[Output] = ()
    ended: Sequence[EndedOutput] = ()
    processing_ns: int = 0
    ready_ns: int = 0


class Stage:
    """One thing that is done to each step. What is not overridden needs nothing done."""

    def add(self, request: Request) -> None:
        """Start a request's output; nobody else has its slot."""

    def process(self, step: StepTokens, processed: Processed) -> None:
        """Do it, and change what is processed: a stop string ends a request earlier."""
        raise NotImplementedError

    def remove(self, slot: int) -> None:
        """Let go of a request that has ended or was aborted."""


class TextStage(Stage):
    """Makes text."""

    def text(self, slot: int) -> str | bytes:
        """The whole text of a request that has ended with this step; bytes are UTF-8."""
        raise NotImplementedError

    def num_tokens(self, slot: int) -> int | None:
        """How many tokens it has, those of this step up to its end included; None: all taken."""
        raise NotImplementedError


class LogprobsStage(Stage):
    """Keeps log-probabilities."""

    def logprobs(self, slot: int) -> "RequestLogprobs":
        """All of a request's."""
        raise NotImplementedError


class Stages(NamedTuple):
    """Those that a configuration asks for, in the order of their work."""

    text: TextStage | None
    outputs: Stage | None
    logprobs: LogprobsStage | None


def end_early(processed: Processed, positions: Sequence[int], num_kept: Sequence[int]) -> None:
    """The rows at ``positions`` have ended by `FinishReason.STOP`, with so many tokens."""
    if not positions:
        return
    num_tokens = processed.num_tokens.copy()
    num_tokens[positions] = num_kept
    reasons = np.full(len(num_tokens), -1, np.int8)
    reasons[processed.finished] = processed.reasons
    reasons[positions] = FinishReason.STOP
    processed.num_tokens = num_tokens
    processed.finished = np.flatnonzero(reasons >= 0).astype(np.int32)
    processed.reasons = reasons[processed.finished]


def each_reason(processed: Processed) -> list[FinishReason | None]:
    """Why each row's request has ended, None where it goes on."""
    each: list[FinishReason | None] = [None] * len(processed.num_tokens)
    for position, reason in zip(
        processed.finished.tolist(), processed.reasons.tolist(), strict=True
    ):
        each[position] = FinishReason(reason)
    return each
