"""The host buffer as a tensor, unshaped: int32 ``[num_reqs, max_tokens]``, -1 beyond each count."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from engines.builtin.representations import count_tokens, ragged_mask
from engines.protocol import Int32Array

if TYPE_CHECKING:
    import torch


class TensorItself:
    """No copy at all: valid only until the runner's host buffer comes round again."""

    columnar = True
    owns_memory = False

    def __init__(self) -> None:
        from torch import from_numpy  # what a check of the cells does without

        self._tensor_over = from_numpy

    def from_device(self, tokens: Int32Array, num_tokens: Int32Array | None) -> "torch.Tensor":
        """A tensor over the buffer, neither copied nor cut."""
        return self._tensor_over(tokens)

    def per_request(self, sampled: "torch.Tensor") -> Iterable[list[int]]:
        """A row of the tensor and its `tolist` for each request, one by one."""
        num_tokens = count_tokens(sampled.numpy())
        if num_tokens is None:
            yield from (row.tolist() for row in sampled)
            return
        for row, count in zip(sampled, num_tokens.tolist(), strict=True):
            yield row[:count].tolist()

    def columns(self, sampled: "torch.Tensor") -> tuple[Int32Array, Int32Array]:
        """Counted and cut by the -1 beyond each row's tokens."""
        array: Int32Array = sampled.numpy()
        num_tokens = count_tokens(array)
        if num_tokens is None:
            return array[:, 0], np.ones(len(array), np.int32)
        return array[ragged_mask(num_tokens, array.shape[1])], num_tokens

    def to_buffers(self, sampled: "torch.Tensor") -> list[Int32Array]:
        """Its memory, as an array."""
        return [sampled.numpy()]

    def from_buffers(self, arrays: Sequence[Int32Array]) -> "torch.Tensor":
        """A tensor over a copy: what has crossed may not be written to."""
        return self._tensor_over(arrays[0].copy())

    def nbytes(self, sampled: "torch.Tensor") -> int:
        """The part of the buffer that the step fills."""
        return sampled.numel() * sampled.element_size()
