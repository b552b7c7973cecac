"""What a pass needs on the GPU, in one copy, from pinned memory that is used in turn."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from engines.builtin.model.pass_inputs import Array


class Staging:
    """``depth`` buffers in turn: as many passes can be launched whose copies the GPU has not made.

    Everything travels as int64, whatever it was.
    """

    def __init__(self, device: torch.device, depth: int) -> None:
        self._device = device
        self._pinned = [torch.empty(0, dtype=torch.int64, pin_memory=True) for _ in range(depth)]
        self._turn = 0

    def bring(self, arrays: Sequence[Array]) -> list[Tensor]:
        """The arrays, one after the other and each as it is, on the device: int64 views."""
        self._turn = (self._turn + 1) % len(self._pinned)
        sizes = [array.size for array in arrays]
        total = sum(sizes)
        if len(self._pinned[self._turn]) < total:
            self._pinned[self._turn] = torch.empty(2 * total, dtype=torch.int64, pin_memory=True)
        pinned = self._pinned[self._turn][:total]
        np.concatenate([array.ravel() for array in arrays], out=pinned.numpy(), casting="same_kind")
        return list(pinned.to(self._device, non_blocking=True).split(sizes))
