"""How the consumer goes through a step's tokens; one way a file, behind `Delivery`."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from engines.builtin.request_table import NewRequest
from engines.protocol import BoolArray, FinishReason, Int32Array


@dataclass(slots=True)
class CompletionOutput:
    """The tokens of one completion; named and shaped as in vLLM. Tracked by the collector."""

    index: int
    token_ids: int | list[int]
    finish_reason: FinishReason | None


@dataclass(slots=True)
class RequestOutput:
    """What vLLM's front end makes for a request in each step. Tracked by the collector."""

    request_index: int
    prompt_token_ids: Int32Array
    outputs: list[CompletionOutput]
    finished: bool


class Delivered(NamedTuple):
    """A step's tokens, given to their requests.

    ``num_sampled`` int32 ``[num_rows]`` before stops, ``num_tokens`` int32 ``[num_rows]`` after
    them, ``finished`` int32 positions in the step's rows and ``reasons`` int8, why.
    """

    num_sampled: Int32Array
    num_tokens: Int32Array
    outputs: list[RequestOutput]
    finished: Int32Array
    reasons: NDArray[np.int8]


class Delivery(Protocol):
    """Owns each running request's output tokens, by row."""

    needs_columns: bool
    """Whether it asks the representation for `columns`."""

    def admit(self, row: int, request: NewRequest) -> None:
        """Start a request's output."""
        ...

    def process(self, rows: Int32Array, sampled: Any, valid: BoolArray | None) -> Delivered:
        """Give a step's tokens to its rows and check stops.

        ``valid`` bool ``[num_reqs]`` leaves out rows that have changed hands since the launch
        (None: none has); ``rows`` are the valid ones, ``sampled`` covers all.
        """
        ...

    def retire(self, row: int) -> Int32Array | list[int]:
        """End a row's request: its output tokens, no longer the delivery's."""
        ...

    def request_output(self, row: int) -> RequestOutput:
        """A running request's output so far, made because somebody asks."""
        ...
