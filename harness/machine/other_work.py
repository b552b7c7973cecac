"""What else the machine does while somebody measures on it: other programs, other guests."""

import os
import time
from typing import NamedTuple

import msgspec
import psutil

from harness.machine.describe import cores_usable

BUSY_SHARE = 0.1
"""Share of the usable cores' time from which on other programs are said to be at work; assumed."""
STOLEN_SHARE = 0.01
"""The same for time that the hypervisor gave to others; assumed."""
WAITED_SHARE = 0.02
"""The same for the time in which a trial was ready and another had its core; assumed."""


class BusyMachineError(RuntimeError):
    """The machine has not become quiet in time, in one sentence."""


class Counters(NamedTuple):
    """Seconds so far: on the clock, of usable cores at work, stolen from them, and our own."""

    clock: float
    busy: float
    stolen: float
    own: float


class OtherWork(msgspec.Struct, frozen=True, kw_only=True):
    """What others did in ``seconds``: ``others`` in cores' worth of time, ``stolen`` as a share."""

    seconds: float
    cores: int
    others: float
    stolen: float

    @property
    def is_busy(self) -> bool:
        """Whether that is enough to be seen in a measurement."""
        return self.others > BUSY_SHARE * self.cores or self.stolen > STOLEN_SHARE


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Other work before a measurement and during it.

    ``waited``: the share of its time in which a trial waited for its core, median over trials;
    None where nobody tells.
    """

    before: OtherWork
    during: OtherWork
    waited: float | None = None

    @property
    def is_busy(self) -> bool:
        """Whether any of it is enough to be seen in the figures."""
        waits = self.waited is not None and self.waited > WAITED_SHARE
        return self.during.is_busy or waits


def read_counters() -> Counters:
    """As they are now. What children used counts as ours once they have ended."""
    cores = psutil.cpu_times(percpu=True)
    affinity = getattr(os, "sched_getaffinity", lambda _: set(range(len(cores))))(0)
    usable = [core for number, core in enumerate(cores) if number in affinity] or cores
    names = ("user", "nice", "system", "irq", "softirq")
    return Counters(
        clock=time.monotonic(),
        busy=sum(getattr(core, name, 0.0) for core in usable for name in names),
        stolen=sum(getattr(core, "steal", 0.0) for core in usable),
        own=sum(os.times()[:4]),
    )


def since(before: Counters, at_least_seconds: float = 0.0) -> OtherWork:
    """What others have done since then; waits until it is ``at_least_seconds`` ago.

    The kernel counts in hundredths of a second: in less than half a second not much can be seen.
    """
    time.sleep(max(0.0, before.clock + at_least_seconds - time.monotonic()))
    now = read_counters()
    return work_between(before, now, cores_usable())


def work_between(before: Counters, now: Counters, cores: int) -> OtherWork:
    """What lies between two readings of the counters of so many cores."""
    seconds = now.clock - before.clock
    others = (now.busy - before.busy) - (now.own - before.own)
    stolen = now.stolen - before.stolen
    return OtherWork(
        seconds=seconds,
        cores=cores,
        others=min(max(0.0, others / seconds), float(cores)) if seconds > 0 else 0.0,
        stolen=min(max(0.0, stolen / seconds / cores), 1.0) if seconds > 0 else 0.0,
    )
