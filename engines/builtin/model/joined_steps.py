"""A step whose rows are computed in parts: taken apart, and put together in its order."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from engines.builtin.device import DeviceBatch
from engines.builtin.logprobs import DeviceLogprobs
from engines.builtin.model.host_logprobs import host_logprobs
from engines.builtin.model.sampler import TokenLogprobs
from engines.protocol import Int32Array, Int64Array


class RowsOfStep(NamedTuple):
    """Rows that are computed together.

    ``places`` int64 ``[num_rows]``: which of the step; None: all. ``num_tokens``: see `StepHandle`.
    """

    places: Int64Array | None
    batch: DeviceBatch
    num_tokens: Int32Array | None

    def taken(self, places: Int64Array) -> "RowsOfStep":
        """Of a whole step those at ``places``."""
        num_tokens = None if self.num_tokens is None else self.num_tokens[places]
        return RowsOfStep(places, self.batch.taken(places), num_tokens)


class PartOfStep(NamedTuple):
    """What rows come to, in memory of the host that the device writes to.

    ``tokens`` int32 ``[num_rows, max_tokens]``, of which ``num_sampled`` are computed. ``logprobs``
    and where they go (see `Sampled.outputs`): None where none were asked for.
    """

    places: Int64Array | None
    tokens: Int32Array
    num_sampled: int
    logprobs: TokenLogprobs | None
    outputs: Int64Array | None

    def fetched(self) -> "PartOfStep":
        """With the log-probabilities of the device on their way to the host."""
        if self.logprobs is None:
            return self
        there = (
            torch.empty(each.shape, dtype=each.dtype, pin_memory=True).copy_(
                each, non_blocking=True
            )
            for each in self.logprobs
        )
        return self._replace(logprobs=TokenLogprobs(*there))

    def host_logprobs(self) -> DeviceLogprobs | None:
        """By row, once they are there."""
        if self.logprobs is None or self.outputs is None:
            return None
        return host_logprobs(self.logprobs, self.outputs, self.tokens.shape)


def joined_step(parts: Sequence[PartOfStep]) -> tuple[Int32Array, DeviceLogprobs | None]:
    """Tokens int32 ``[num_reqs, max_tokens]`` and log-probabilities, once they are there."""
    if parts[0].places is None:
        return parts[0].tokens, parts[0].host_logprobs()
    order = np.argsort(np.concatenate([each.places for each in parts if each.places is not None]))
    tokens = np.concatenate([each.tokens for each in parts])[order]
    logprobs = [drawn for each in parts if (drawn := each.host_logprobs()) is not None]
    if not logprobs:
        return tokens, None
    columns = zip(*logprobs, strict=True)
    return tokens, DeviceLogprobs(*(np.concatenate(column)[order] for column in columns))
