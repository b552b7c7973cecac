"""The channels themselves: a broadcast is written once for each rank."""

from collections.abc import Callable, Sequence

from engines.builtin.transport import RankEnd, TransportPlan
from engines.builtin.wire import Buffer
from engines.builtin.worker.channel import ByteChannel
from engines.builtin.worker.messages import STEP


class _Inbox:
    """What has come on a channel, if it is of a kind."""

    spun_ns = 0

    def __init__(self, channels: Sequence[ByteChannel], kind: bytes) -> None:
        self._channels, self._kind = channels, kind

    def take(self) -> bytes | None:
        """The next message of the first channel."""
        channel = self._channels[0]
        if channel.has_message and channel.peek(1).startswith(self._kind):
            return channel.recv()
        return None

    def spin(self, is_enough: Callable[[], bool]) -> bool:
        """The kernel wakes who waits."""
        return False

    def park(self) -> bool:
        """Every message is told on the channel: it is the message."""
        return True


class RankSocket:
    """A rank's end."""

    def __init__(
        self, plan: TransportPlan, index: int, descriptors: tuple[int, ...], channel: ByteChannel
    ) -> None:
        self.broadcasts = _Inbox([channel], b"")
        self._channel = channel

    def answer(self, *buffers: Buffer) -> None:
        """On the channel."""
        self._channel.send(*buffers)


class Sockets:
    """The scheduler's end."""

    spins = False
    rank_end: type[RankEnd] = RankSocket
    blocks = False
    descriptors = ()
    num_bytes = 0

    def __init__(self, plan: TransportPlan, channels: Sequence[ByteChannel]) -> None:
        self._channels = channels
        self.answers = _Inbox(channels, STEP)

    def meet(self) -> None:
        """They have met."""

    def broadcast(self, listen: Callable[[float], None], *buffers: Buffer) -> None:
        """To one after the other; each channel makes room by itself."""
        for channel in self._channels:
            channel.send(*buffers)

    def close(self) -> None:
        """Nothing of its own."""
