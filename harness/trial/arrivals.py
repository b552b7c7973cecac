"""When requests reach the engine's door: looked up between steps, or stamped from outside."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from engines.protocol import Int64Array
from harness.trial.clock import Clock
from workloads.schedule import Schedule


class ArrivalSource(Protocol):
    """Tells the client, between two steps, who has arrived; requests arrive in their order."""

    def open(self) -> int:
        """Begin: the moment from which arrival times count, in the clock's nanoseconds."""
        ...

    def arrived(self, index: int, now_ns: int) -> int:
        """When a request arrived, 0 where it has not; ``now_ns`` is the moment of asking."""
        ...

    def wait_for(self, index: int) -> None:
        """Return when it has."""
        ...


class BetweenSteps:
    """The client looks at the clock: what falls due during a step arrives at its end."""

    def __init__(self, arrival_seconds: NDArray[Any], clock: Clock) -> None:
        self._clock = clock
        self._due: list[int] = nanoseconds(arrival_seconds).tolist()
        self._opened = 0

    def open(self) -> int:
        """Now."""
        self._opened = self._clock.now()
        return self._opened

    def arrived(self, index: int, now_ns: int) -> int:
        """The moment of asking, once it is due."""
        return now_ns if self._opened + self._due[index] <= now_ns else 0

    def wait_for(self, index: int) -> None:
        """Wait by the clock."""
        self._clock.wait_until(self._opened + self._due[index])


def nanoseconds(seconds: NDArray[Any]) -> Int64Array:
    """Whole nanoseconds, int64."""
    return np.rint(seconds * 1e9).astype(np.int64)


def comes_by_itself(schedule: Schedule) -> bool:
    """Whether requests arrive at times of their own, not together, whatever the engine does."""
    first, last = schedule.arrival_seconds[[0, -1]]
    return not schedule.max_concurrency and bool(last > first)
