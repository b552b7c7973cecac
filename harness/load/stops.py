"""When a client process itself stood still: its collector's pauses, and its loop's."""

import asyncio
from array import array
from time import perf_counter_ns

import msgspec

from harness.collector.probe import Events
from harness.load.timer import Timer

_TICK_NS = 1_000_000


class ClientStops(msgspec.Struct, frozen=True):
    """Begins and ends, of `time.perf_counter_ns`, of one client process.

    ``late``: from the moment at which its loop was to run to the one at which it ran, where that
    was more than a millisecond. A pause is mostly in both.
    """

    process: int
    pauses: list[tuple[int, int]] = []
    late: list[tuple[int, int]] = []


class LoopWatch:
    """Asks an event loop for a call every millisecond, and notes when that comes late."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._late_ns = array("q")
        self._due_ns = 0
        self._timer = Timer(loop, self._tick)

    def begin(self, start_ns: int) -> None:
        """Tick from ``start_ns`` on."""
        self._due_ns = start_ns
        self._timer.set(start_ns)

    def end(self, process: int, collections: Events) -> ClientStops:
        """What was late, beside the pauses of the process's collector."""
        self._timer.close()
        ends = collections.start_ns + collections.duration_ns
        late = self._late_ns.tolist()
        return ClientStops(
            process,
            list(zip(collections.start_ns.tolist(), ends.tolist(), strict=True)),
            list(zip(late[::2], late[1::2], strict=True)),
        )

    def _tick(self) -> None:
        now = perf_counter_ns()
        if now - self._due_ns > _TICK_NS:
            self._late_ns.append(self._due_ns)
            self._late_ns.append(now)
        self._due_ns = now + _TICK_NS
        self._timer.set(self._due_ns)
