"""Two rings in shared memory, as vLLM's executor has them: to all ranks, and back from the first.

An end that waits looks for a bounded time and then parks until its channel rings. vLLM's window is
a second, so under load none of its processes ever sleeps.
"""

import os
import select
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from engines.builtin.transport import TransportPlan
from engines.builtin.transport.ring import RingReader, RingWriter, open_memory
from engines.builtin.transport.spinning import spin_seconds
from engines.builtin.wire import Buffer
from engines.builtin.worker.channel import ByteChannel


class RankRings:
    """A rank's end."""

    def __init__(
        self, plan: TransportPlan, index: int, descriptors: tuple[int, ...], channel: ByteChannel
    ) -> None:
        to_ranks, back = descriptors
        self.broadcasts = RingReader(
            to_ranks, plan.num_ranks, index, channel, spin_seconds(plan.config)
        )
        self._writer = RingWriter(back, 1, [channel])
        self._channel = channel

    def answer(self, *buffers: Buffer) -> None:
        """One write."""
        self._writer.send(self._listen, *buffers)

    def _listen(self, seconds: float) -> None:
        readable, _, _ = select.select([self._channel], [], [], seconds)
        if readable:
            self._channel.receive()


class SharedMemory:
    """The scheduler's end."""

    spins = True
    rank_end = RankRings
    blocks = False

    def __init__(self, plan: TransportPlan, channels: Sequence[ByteChannel]) -> None:
        self._plan, self._channels = plan, channels
        to_ranks = open_memory(plan.num_ranks)
        try:
            self.descriptors = (to_ranks, open_memory(1))
        except ValueError:
            os.close(to_ranks)
            raise
        self._opened = ExitStack()
        for descriptor in self.descriptors:
            self._opened.callback(os.close, descriptor)
        self._writer: RingWriter
        self.answers: RingReader

    def meet(self) -> None:
        """The ranks have the memory too."""
        to_ranks, back = self.descriptors
        self._writer = RingWriter(to_ranks, self._plan.num_ranks, self._channels)
        self.answers = RingReader(back, 1, 0, self._channels[0], spin_seconds(self._plan.config))
        self._opened.callback(self._writer.close)
        self._opened.callback(self.answers.close)

    @property
    def num_bytes(self) -> int:
        """Written once, whoever reads."""
        return self._writer.num_bytes + self.answers.num_bytes

    def broadcast(self, listen: Callable[[float], None], *buffers: Buffer) -> None:
        """One write."""
        self._writer.send(listen, *buffers)

    def close(self) -> None:
        """The memory goes with its last process."""
        self._opened.close()
