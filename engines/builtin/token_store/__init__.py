"""What the scheduler's side keeps of each running request's output; one way a file."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from engines.builtin.request_table import Request
from engines.protocol import BoolArray, Int32Array, SamplingParams


class Taken(NamedTuple):
    """A step's tokens as their requests have taken them, up to their stops.

    ``num_sampled`` int32 ``[num_rows]`` before stops, ``num_tokens`` int32 ``[num_rows]`` after
    them, ``finished`` int32 positions in the step's rows and ``reasons`` int8, why. ``tokens``:
    those taken, in the store's own shape. ``num_dropped``: tokens of rows that were left out.
    """

    num_sampled: Int32Array
    num_tokens: Int32Array
    finished: Int32Array
    reasons: NDArray[np.int8]
    tokens: Any
    num_dropped: int = 0


class TokenStore(Protocol):
    """Owns each running request's output tokens, by row; checks stop ids and lengths.

    Preemption and prefix hashing read from here. It knows nothing of text.
    """

    def admit(self, row: int, request: Request) -> None:
        """Start a request's output, or go on with ``output_token_ids`` after a preemption."""
        ...

    def append(self, rows: Int32Array, sampled: Any, valid: BoolArray | None) -> Taken:
        """Give a step's tokens to its rows and check stops.

        ``valid`` bool ``[num_reqs]`` leaves out rows that have changed hands since the launch
        (None: none has); ``rows`` are the valid ones, ``sampled`` covers all.
        """
        ...

    def token_ids(self, row: int, start: int) -> Int32Array:
        """A running request's output tokens from ``start`` on, int32."""
        ...

    def retire(self, row: int) -> Int32Array | list[int]:
        """Take a request off its row: its output tokens, no longer the store's."""
        ...


def stop_token_ids(params: SamplingParams, eos_token_ids: tuple[int, ...]) -> tuple[int, ...]:
    """The tokens that end a request: its own, and those that end any text unless ignored."""
    if params.ignore_eos:
        return params.stop_token_ids
    return params.stop_token_ids + eos_token_ids
