"""Values and offsets, as in Arrow and CSR: int32 ``[total]`` and int32 ``[num_reqs + 1]``."""

from collections.abc import Iterable
from typing import NamedTuple, TYPE_CHECKING

import numpy as np

from engines.builtin.representations import ragged_mask
from engines.protocol import Int32Array

if TYPE_CHECKING:
    import torch


class FlatTokens(NamedTuple):
    """Row ``i`` holds ``values[offsets[i]:offsets[i + 1]]``."""

    values: Int32Array
    offsets: Int32Array


class FlatArrays:
    """Two arrays a step, whatever the batch, and no padding."""

    columnar = True

    def from_device(self, tokens: "torch.Tensor", num_tokens: Int32Array | None) -> FlatTokens:
        array = tokens.numpy()
        if num_tokens is None:
            return FlatTokens(array[:, 0].copy(), np.arange(len(array) + 1, dtype=np.int32))
        offsets = np.zeros(len(array) + 1, np.int32)
        np.cumsum(num_tokens, out=offsets[1:])
        return FlatTokens(array[ragged_mask(num_tokens, array.shape[1])], offsets)

    def per_request(self, sampled: FlatTokens) -> Iterable[list[int]]:
        values, offsets = sampled
        for start, end in zip(offsets[:-1], offsets[1:], strict=True):
            yield values[start:end].tolist()

    def columns(self, sampled: FlatTokens) -> tuple[Int32Array, Int32Array]:
        return sampled.values, np.diff(sampled.offsets)

    def nbytes(self, sampled: FlatTokens) -> int:
        return sampled.values.nbytes + sampled.offsets.nbytes
