"""How the consumer goes through a step's tokens; one way a file, behind `Delivery`."""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from engines.builtin.delivery.outputs import RequestOutput
from engines.builtin.request_table import Request
from engines.protocol import BoolArray, Int32Array, SamplingParams

if TYPE_CHECKING:
    from engines.builtin.delivery.collector import RequestOutputCollector
    from engines.builtin.logprobs import RequestLogprobs


class Delivered(NamedTuple):
    """A step's tokens, given to their requests.

    ``num_sampled`` int32 ``[num_rows]`` before stops, ``num_tokens`` int32 ``[num_rows]`` after
    them, ``finished`` int32 positions in the step's rows and ``reasons`` int8, why. ``outputs``:
    one a row that got tokens, or none at all.
    """

    num_sampled: Int32Array
    num_tokens: Int32Array
    outputs: list[RequestOutput]
    finished: Int32Array
    reasons: NDArray[np.int8]


class Delivery(Protocol):
    """Owns each running request's output, by row."""

    needs_columns: bool
    """Whether it asks the representation for `columns`."""

    def admit(self, row: int, request: Request) -> None:
        """Start a request's output, or go on with one whose ``suspended`` is set."""
        ...

    def process(
        self, rows: Int32Array, sampled: Any, valid: BoolArray | None, logprobs: Any = None
    ) -> Delivered:
        """Give a step's tokens to its rows and check stops.

        ``valid`` bool ``[num_reqs]`` leaves out rows that have changed hands since the launch
        (None: none has); ``rows`` are the valid ones, ``sampled`` and ``logprobs`` cover all.
        """
        ...

    def token_ids(self, row: int, start: int) -> Int32Array:
        """A running request's output tokens from ``start`` on, int32."""
        ...

    def suspend(self, row: int) -> Any:
        """Take a preempted request's output off its row; what `admit` needs to go on with it."""
        ...

    def retire(self, row: int) -> Int32Array | list[int]:
        """End a row's request: its output tokens, no longer the delivery's."""
        ...

    def request_output(self, row: int) -> RequestOutput:
        """A running request's output so far, made because somebody asks."""
        ...

    def output_text(self, request_index: int) -> str:
        """The text of a request that has ended; "" of one that never ran.

        Raises ValueError where there is no detokenizer.
        """
        ...

    def output_logprobs(self, request_index: int) -> "RequestLogprobs":
        """The log-probabilities of a request that has ended. Raises as `output_text`."""
        ...

    def request_stream(self, request_index: int) -> "RequestOutputCollector":
        """The stream of a request that runs or has ended.

        Raises KeyError for any other, ValueError where requests have none.
        """
        ...

    def forget(self, request_index: int) -> None:
        """Let go of text, log-probabilities and stream of a request that has ended."""
        ...


class TokensOnly:
    """The part of a `Delivery` that has nothing but tokens to give."""

    def output_text(self, request_index: int) -> str:
        """Raises ValueError."""
        raise ValueError("no text: the engine runs with --detokenizer none")

    def output_logprobs(self, request_index: int) -> "RequestLogprobs":
        """Raises ValueError."""
        raise ValueError("no log-probabilities: the engine runs with --logprobs none")

    def request_stream(self, request_index: int) -> "RequestOutputCollector":
        """Raises ValueError."""
        raise ValueError("no streams: the engine runs with --request-streams none")

    def forget(self, request_index: int) -> None:
        """There is nothing."""


def stop_token_ids(params: SamplingParams, eos_token_ids: tuple[int, ...]) -> tuple[int, ...]:
    """The tokens that end a request."""
    if params.ignore_eos:
        return params.stop_token_ids
    return params.stop_token_ids + eos_token_ids
