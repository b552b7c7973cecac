"""Log-probabilities of sampled tokens: from the runner to each request's own, one shape a file."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from engines.builtin.registries import LOGPROBS
from engines.protocol import BoolArray, Int32Array


@dataclass
class Logprob:
    """One token's; named and shaped as in vLLM, so without slots. Tracked by the collector.

    ``rank``: how many tokens of the vocabulary are as probable, itself included.
    """

    logprob: float
    rank: int
    decoded_token: str | None = None


class RequestLogprobs(Protocol):
    """A position an output token: the sampled token and the most probable ones by their ids."""

    def __len__(self) -> int:
        """Positions."""
        ...

    def __getitem__(self, position: int, /) -> dict[int, Logprob]:
        """Of one output token."""
        ...

    def __iter__(self) -> Iterator[dict[int, Logprob]]:
        """Of all."""
        ...


class DeviceLogprobs(NamedTuple):
    """A step's as the device gives them, on the host; nobody writes to them again.

    ``token_ids`` int32 and ``logprobs`` float32 ``[num_reqs, max_tokens, num_logprobs + 1]``: the
    sampled token, then the most probable ones in order; ``ranks`` int32 ``[num_reqs,
    max_tokens]``: the sampled token's. Beyond a row's tokens they mean nothing.
    """

    token_ids: Int32Array
    logprobs: NDArray[np.float32]
    ranks: Int32Array


class LogprobsShape(Protocol):
    """How they are handed over and kept.

    What `from_device` returns has ``offsets``: row ``i`` has positions ``offsets[i]`` to
    ``offsets[i + 1]``, int32 ``[num_reqs + 1]``; None where each row has one.
    """

    needs_objects: bool
    """Whether each request's are objects from the beginning."""

    def from_device(self, drawn: DeviceLogprobs, num_tokens: Int32Array | None) -> Any:
        """The runner's side: ``num_tokens`` int32 ``[num_reqs]``, None where each row has one."""
        ...

    def per_request(
        self, step: Any, firsts: Sequence[int], counts: Sequence[int]
    ) -> Iterable[RequestLogprobs]:
        """The other side: ``counts[i]`` positions of the step from ``firsts[i]`` on, for each."""
        ...

    def empty(self) -> Any:
        """What a request's are gathered in, by its ``extend``."""
        ...


class LogprobsChoice(NamedTuple):
    """What ``logprobs`` says: "none" and 0, or a shape and how many beside the sampled token."""

    shape: str
    num_logprobs: int


def parse_logprobs(text: str) -> LogprobsChoice:
    """Read "none", "lists:5" or "arrays:5". Raises ValueError for anything else."""
    shape, colon, number = text.partition(":")
    if LOGPROBS.load(shape) is None and not colon:
        return LogprobsChoice(shape, 0)
    if LOGPROBS.load(shape) is None or not (number.isascii() and number.isdigit()):
        raise ValueError(
            f"--axis logprobs={text}: must be none, lists:K or arrays:K with K tokens, such as "
            "lists:5"
        )
    return LogprobsChoice(shape, int(number))


def load_logprobs(text: str) -> LogprobsShape | None:
    """The shape that ``logprobs`` means, None for none. Raises ValueError as `parse_logprobs`."""
    shape = LOGPROBS.load(parse_logprobs(text).shape)
    return None if shape is None else shape()


def one_position(
    token_ids: Sequence[int], logprobs: Sequence[float], rank: int
) -> dict[int, Logprob]:
    """The sampled token with its ``rank``, then the others from rank 1 on; equal ids are one."""
    ranks = chain((rank,), count(1))
    return {
        token_id: Logprob(logprob, rank)
        for token_id, logprob, rank in zip(token_ids, logprobs, ranks, strict=False)
    }


def first_positions(
    offsets: Int32Array | None, num_rows: int, valid: BoolArray | None
) -> NDArray[np.intp]:
    """Where the positions of each row begin in a step's, for the ``num_rows`` valid rows."""
    if offsets is not None:
        firsts = offsets[:-1].astype(np.intp)
        return firsts if valid is None else firsts[valid]
    return np.arange(num_rows) if valid is None else np.flatnonzero(valid)


def row_offsets(num_tokens: Int32Array | None) -> Int32Array | None:
    """The ``offsets`` of a step."""
    if num_tokens is None:
        return None
    offsets = np.zeros(len(num_tokens) + 1, np.int32)
    np.cumsum(num_tokens, out=offsets[1:])
    return offsets
