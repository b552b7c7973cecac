"""The ranks of tensor parallelism: one alone, or those of a torch.distributed group."""

import torch.distributed as dist
from torch import Tensor

# torch 2.13 warns of its older name.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


class OneRank:
    """Has all of the model, and nobody to talk to."""

    rank = 0
    size = 1

    def all_reduce(self, x: Tensor) -> Tensor:
        """``x`` itself."""
        return x

    def all_gather(self, x: Tensor) -> Tensor:
        """``x`` itself."""
        return x


ONE_RANK = OneRank()


class DistributedRanks:
    """The processes of a group that is ready; None: the default one."""

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self._group = group
        self.rank = dist.get_rank(group)
        self.size = dist.get_world_size(group)

    def all_reduce(self, x: Tensor) -> Tensor:
        """The sum, in place: ``x`` itself."""
        dist.all_reduce(x, group=self._group)
        return x

    def all_gather(self, x: Tensor) -> Tensor:
        """The ranks' ``x`` side by side in their last dimension, a new tensor."""
        gathered = x.new_empty(self.size * x.shape[0], *x.shape[1:])  # gloo takes no other shape
        _all_gather(gathered, x.contiguous(), group=self._group)
        return gathered.view(self.size, *x.shape).movedim(0, -2).flatten(-2)
