"""The ranks of tensor parallelism: one alone, or those of a torch.distributed group."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


class OneRank:
    """Has all of the model, and nobody to talk to."""

    rank = 0
    size = 1

    def all_reduce(self, x: "Tensor") -> "Tensor":
        """``x`` itself."""
        return x

    def all_gather(self, x: "Tensor") -> "Tensor":
        """``x`` itself."""
        return x


ONE_RANK = OneRank()


class DistributedRanks:
    """The processes of a group that is ready, of torch.distributed or of one of its backends."""

    def __init__(self, group: Any) -> None:
        self._group = group
        self.rank: int = group.rank()
        self.size: int = group.size()

    def all_reduce(self, x: "Tensor") -> "Tensor":
        """The sum, in place: ``x`` itself."""
        self._group.allreduce([x]).wait()
        return x

    def all_gather(self, x: "Tensor") -> "Tensor":
        """The ranks' ``x`` side by side in their last dimension, a new tensor."""
        gathered = x.new_empty(self.size * x.shape[0], *x.shape[1:])  # gloo takes no other shape
        self._group._allgather_base(gathered, x.contiguous()).wait()
        return gathered.view(self.size, *x.shape).movedim(0, -2).flatten(-2)


def join(backend: str, folder: str, rank: int, size: int) -> DistributedRanks:
    """The ranks that meet in ``folder``.

    Of gloo there can be several groups in a process; of other backends it has one.
    """
    import torch.distributed as dist  # one rank alone does without

    store = dist.FileStore(f"{folder}/ranks", size)  # type: ignore[attr-defined]
    if backend == "gloo":
        return DistributedRanks(dist.ProcessGroupGloo(store, rank, size, timedelta(minutes=30)))
    dist.init_process_group(backend, store=store, rank=rank, world_size=size)
    return DistributedRanks(dist.group.WORLD)
