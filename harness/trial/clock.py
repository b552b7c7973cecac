"""Clocks for a trial's arrivals: the real one, one that can be stopped, one that counts steps."""

import time
from collections.abc import Callable
from typing import Protocol

from engines.deadline import wait_until

VIRTUAL_STEP_NS = 10_000_000
"""On the virtual clock a step takes 10 ms, whatever the machine did meanwhile."""


class Clock(Protocol):
    """Says when it is, in nanoseconds, and waits."""

    def now(self) -> int:
        """Nanoseconds since an arbitrary zero."""
        ...

    def step_done(self, late_ns: int = 0) -> None:
        """A step has ended, so long after its modelled end."""
        ...

    def stamp(self, moment_ns: int) -> int:
        """What it said or would have said at that moment of `time.perf_counter_ns`."""
        ...

    def wait_until(self, moment_ns: int) -> None:
        """Return no earlier than that."""
        ...


class RealClock:
    """`time.perf_counter_ns`."""

    now = staticmethod(time.perf_counter_ns)

    def step_done(self, late_ns: int = 0) -> None:
        """Nothing: time passes by itself."""

    def stamp(self, moment_ns: int) -> int:
        """The same."""
        return moment_ns

    def wait_until(self, moment_ns: int) -> None:
        """Sleep until then."""
        wait_until(moment_ns)


class PausedClock(RealClock):
    """The real one, less the time for which it was stopped, and by which modelled waits overran.

    On one core with another program a sleep ends late. Who pauses has no step under way, so all
    that comes after is late by as much, and nothing is gained by it.
    """

    def __init__(self) -> None:
        self.away_ns = 0

    def step_done(self, late_ns: int = 0) -> None:
        """What it was late is nobody's time."""
        self.away_ns += late_ns

    def now(self) -> int:
        """Nanoseconds of `time.perf_counter_ns` that were not away."""
        return time.perf_counter_ns() - self.away_ns

    def stamp(self, moment_ns: int) -> int:
        """Less what it was away by now: who pauses has nothing under way."""
        return moment_ns - self.away_ns

    def wait_until(self, moment_ns: int) -> None:
        """Sleep until then, by this clock."""
        wait_until(moment_ns + self.away_ns)

    def stop_during(self, wait: Callable[[], None]) -> None:
        """Let ``wait`` take no time."""
        self.away_ns -= time.perf_counter_ns()
        wait()
        self.away_ns += time.perf_counter_ns()


class VirtualClock:
    """Moves by steps alone, so that who arrives in which step repeats to the digit."""

    def __init__(self) -> None:
        self._now = 1  # 0 means "not yet" in the recorder

    def now(self) -> int:
        """Nanoseconds of the steps so far and of the jumps between them."""
        return self._now

    def step_done(self, late_ns: int = 0) -> None:
        """A step's time is over."""
        self._now += VIRTUAL_STEP_NS

    def stamp(self, moment_ns: int) -> int:
        """Now: no time passes within a step."""
        return self._now

    def wait_until(self, moment_ns: int) -> None:
        """Jump there."""
        self._now = max(self._now, moment_ns)
