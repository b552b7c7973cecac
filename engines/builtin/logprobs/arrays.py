"""Three arrays a step from the runner, kept as bytes a request: vLLM since #28245, and flat."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.builtin.logprobs import DeviceLogprobs, Logprob, one_position, row_offsets
from engines.builtin.representations import ragged_mask
from engines.protocol import Int32Array


class LogprobsArrays(NamedTuple):
    """A position a sampled token of the step.

    ``token_ids`` int32 and ``logprobs`` float32 ``[num_tokens, num_logprobs + 1]``, ``ranks``
    int32 ``[num_tokens]``.
    """

    token_ids: Int32Array
    logprobs: NDArray[np.float32]
    ranks: Int32Array
    offsets: Int32Array | None


@dataclass(slots=True)
class FlatLogprobs:
    """A request's as bytes, which the collector does not track; a position is made when asked for.

    ``token_ids`` int32 and ``logprobs`` float32, ``width`` a position, ``ranks`` int32, one.
    """

    width: int
    token_ids: bytes | bytearray
    logprobs: bytes | bytearray
    ranks: bytes | bytearray

    def __len__(self) -> int:
        """Positions."""
        return len(self.ranks) // 4

    def __getitem__(self, position: int, /) -> dict[int, Logprob]:
        """Of one output token. Raises IndexError beyond the last."""
        if not 0 <= position < len(self):
            raise IndexError(position)
        place = 4 * self.width * position
        return one_position(
            struct.unpack_from(f"={self.width}i", self.token_ids, place),
            struct.unpack_from(f"={self.width}f", self.logprobs, place),
            *struct.unpack_from("=i", self.ranks, 4 * position),
        )

    def __iter__(self) -> Iterator[dict[int, Logprob]]:
        """Of all."""
        return map(self.__getitem__, range(len(self)))

    def extend(self, later: "FlatLogprobs") -> None:
        """Add those of later tokens."""
        self.width = later.width
        self.token_ids += later.token_ids
        self.logprobs += later.logprobs
        self.ranks += later.ranks


class ArrayLogprobs:
    """Three arrays whatever the batch; a tracked object a request and step, none that stays."""

    needs_objects = False

    def from_device(self, drawn: DeviceLogprobs, num_tokens: Int32Array | None) -> LogprobsArrays:
        """The arrays without what lies beyond each row's tokens."""
        places: Any = np.s_[:, 0]
        if num_tokens is not None:
            places = ragged_mask(num_tokens, drawn.ranks.shape[1])
        return LogprobsArrays(
            drawn.token_ids[places],
            drawn.logprobs[places],
            drawn.ranks[places],
            row_offsets(num_tokens),
        )

    def per_request(
        self, step: LogprobsArrays, firsts: Sequence[int], counts: Sequence[int]
    ) -> Iterator[FlatLogprobs]:
        """Slices of the step's bytes for each request."""
        token_ids, logprobs, ranks = (array.tobytes() for array in step[:3])
        width = step.token_ids.shape[1]
        size = 4 * width
        for first, count in zip(firsts, counts, strict=True):
            begin, end = first * size, (first + count) * size
            yield FlatLogprobs(
                width,
                token_ids[begin:end],
                logprobs[begin:end],
                ranks[4 * first : 4 * (first + count)],
            )

    def empty(self) -> FlatLogprobs:
        """Bytes that can grow."""
        return FlatLogprobs(0, bytearray(), bytearray(), bytearray())
