"""A broadcast of torch.distributed over gloo, as vLLM's driver sent objects to its workers.

Its length goes first, then its bytes. Answers go by the channels.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from engines.builtin.transport import TransportPlan
from engines.builtin.transport.sockets import Sockets
from engines.builtin.wire import Buffer
from engines.builtin.worker.channel import ByteChannel, ChannelClosedError

_FOREVER = timedelta(days=365)
"""A worker waits for its next step as long as there is none."""

_END = -1


class _Broadcasts:
    """A group of the scheduler and its ranks, apart from any other in this process."""

    def __init__(self, plan: TransportPlan, place: int) -> None:
        size = plan.num_ranks + 1
        store = dist.FileStore(f"{plan.folder}/broadcasts", size)  # type: ignore[attr-defined]
        self._group: Any = dist.ProcessGroupGloo(store, place, size, _FOREVER)
        self._options = dist.BroadcastOptions()
        self._options.rootRank = 0
        self.spun_ns = 0

    def _run(self, tensor: torch.Tensor) -> None:
        try:
            self._group.broadcast([tensor], self._options).wait()
        except RuntimeError as error:
            raise ChannelClosedError(str(error)) from None

    def send(self, data: bytearray) -> None:
        """To all others."""
        self._run(torch.tensor([len(data)]))
        self._run(torch.frombuffer(data, dtype=torch.uint8))

    def end(self) -> None:
        """Nothing more will come."""
        with suppress(ChannelClosedError):
            self._run(torch.tensor([_END]))

    def take(self) -> bytes:
        """Wait for the next message, deaf to anything else. Raises ChannelClosedError."""
        length = torch.empty(1, dtype=torch.int64)
        self._run(length)
        if (count := int(length)) == _END:
            raise ChannelClosedError("closed by the scheduler")
        data = np.empty(count, np.uint8)
        self._run(torch.from_numpy(data))
        return data.tobytes()

    def spin(self, is_enough: Callable[[], bool]) -> bool:
        """Never asked for: there is always a message."""
        return True

    def park(self) -> bool:
        """Never asked for."""
        return False


class RankGloo:
    """A rank's end."""

    def __init__(
        self, plan: TransportPlan, index: int, descriptors: tuple[int, ...], channel: ByteChannel
    ) -> None:
        self.broadcasts = _Broadcasts(plan, index + 1)
        self._channel = channel

    def answer(self, *buffers: Buffer) -> None:
        """On the channel."""
        self._channel.send(*buffers)


class Gloo(Sockets):
    """The scheduler's end."""

    rank_end = RankGloo
    blocks = True

    def __init__(self, plan: TransportPlan, channels: Sequence[ByteChannel]) -> None:
        super().__init__(plan, channels)
        self._plan = plan
        self._broadcasts: _Broadcasts | None = None
        self.num_bytes = 0

    def meet(self) -> None:
        """Wait for all ranks."""
        self._broadcasts = _Broadcasts(self._plan, 0)

    def broadcast(self, listen: Callable[[float], None], *buffers: Buffer) -> None:
        """As one buffer; counted once, though gloo's tree sends it to each."""
        assert self._broadcasts is not None
        data = bytearray().join(buffers)
        self.num_bytes += len(data) + torch.int64.itemsize
        self._broadcasts.send(data)

    def close(self) -> None:
        """Tell the ranks, which hear nothing else."""
        if self._broadcasts is not None:
            self._broadcasts.end()
            self._broadcasts = None
