"""How messages come from the scheduler to all ranks and the first rank's answers back; one way a
file, found by name in `registries.TRANSPORTS`.

Beside it each rank has a `ByteChannel`: there its process is set up, calls are answered, errors are
told, and an end that is gone is seen.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from engines.builtin.wire import Buffer
from engines.builtin.worker.channel import ByteChannel
from engines.protocol import EngineConfig


class TransportPlan(NamedTuple):
    """What the ends are told. ``num_ranks``: those that are reached; ``folder``: to meet in."""

    config: EngineConfig
    num_ranks: int
    folder: str


class Incoming(Protocol):
    """Messages that one end gets; spinning and parking are for those that come without a socket."""

    spun_ns: int
    """CPU time spent looking at what had not come yet."""

    def take(self) -> bytes | None:
        """The next message, None where none is there. Raises ChannelClosedError."""
        ...

    def spin(self, is_enough: Callable[[], bool]) -> bool:
        """Look for a while, or until it is enough; whether a message is there."""
        ...

    def park(self) -> bool:
        """Ask to be told on the channel; False where a message has come meanwhile."""
        ...


class SchedulerEnd(Protocol):
    """Broadcasts, and gets what the first rank answers."""

    spins: bool
    """Whether an end that waits may burn its core."""
    blocks: bool
    """Whether a rank that waits for a broadcast can do nothing else, nor be sent anything alone."""
    rank_end: "type[RankEnd]"
    descriptors: tuple[int, ...]
    """The ranks' processes inherit them."""
    num_bytes: int
    """Bytes both ways that have not gone by the channels, headers included."""

    @property
    def answers(self) -> Incoming:
        """Of the first rank."""
        ...

    def __init__(self, plan: TransportPlan, channels: Sequence[ByteChannel]) -> None:
        """Before there is a rank; ``channels`` fills. Raises ValueError where there is no room."""
        ...

    def meet(self) -> None:
        """Once every rank's process has been started."""
        ...

    def broadcast(self, listen: Callable[[float], None], *buffers: Buffer) -> None:
        """One message to all ranks. ``listen(seconds)`` hears the channels while one of the ranks
        has to make room. Raises ChannelClosedError.
        """
        ...

    def close(self) -> None:
        """Before the channels are closed; safe to call twice."""
        ...


class RankEnd(Protocol):
    """A rank's: broadcasts come in, the first rank's answers go out."""

    @property
    def broadcasts(self) -> Incoming:
        """To it and all others."""
        ...

    def __init__(
        self, plan: TransportPlan, index: int, descriptors: tuple[int, ...], channel: ByteChannel
    ) -> None:
        """Of the rank that is reached as the ``index``-th."""
        ...

    def answer(self, *buffers: Buffer) -> None:
        """One message to the scheduler. Raises ChannelClosedError."""
        ...
