"""A step whose rows were computed in parts: put together in the order of its rows."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engines.builtin.model.sampler import TokenLogprobs
from engines.protocol import Int64Array


class PartOfStep(NamedTuple):
    """As `StepTokens`, on the device, with where the log-probabilities go: see `Sampled.outputs`.

    ``outputs`` int64, on the host; -1 where a draft was not accepted.
    """

    tokens: Tensor
    logprobs: TokenLogprobs | None
    outputs: Int64Array


def joined_step(
    parts: Sequence[PartOfStep], rows: Sequence[Int64Array], rows_there: Sequence[Tensor]
) -> PartOfStep:
    """The whole step. ``rows``: which each part has computed; ``rows_there``: on the device."""
    width = parts[0].tokens.shape[1]
    tokens = parts[0].tokens.new_empty((sum(map(len, rows)), width))
    for part, places in zip(parts, rows_there, strict=True):
        tokens[places] = part.tokens
    logprobs = None
    if parts[0].logprobs is not None:
        each = zip(*(part.logprobs for part in parts if part.logprobs is not None), strict=True)
        logprobs = TokenLogprobs(*map(torch.cat, each))
    outputs = [
        np.where(part.outputs < 0, -1, own[part.outputs // width] * width + part.outputs % width)
        for part, own in zip(parts, rows, strict=True)
    ]
    return PartOfStep(tokens, logprobs, np.concatenate(outputs))
