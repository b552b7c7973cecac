"""What all images of a kind have collected: sums that only grow, whoever comes and goes.

A place is a number among those of one name that run at once. An image has the lowest that is free,
and whoever comes after it goes on from its sums. So there are as many as have run at once, and
none ever goes back.
"""

import re
from threading import Lock
from typing import NamedTuple

import numpy as np

from engines.protocol import Int64Array
from harness.probed.ring import GENERATIONS

BOUNDS_SECONDS = (0.0001, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Of the classes of pauses that are counted; the last class has no bound."""
SUMS = ("collections", "pause_ns", "cpu_ns", "objects_freed", "lost")
"""Rows of `Sums.totals`."""
_MOST = 256
_NUMBERED = re.compile(r"-\d+(:\d+)*$")
"""The end of what `multiprocessing` calls its processes: another for each of them."""


class Place(NamedTuple):
    """Of an image. ``number``: among those of its name and role that run with it."""

    process: str
    role: str
    number: int


class Sums:
    """Of one place: ``totals`` int64 ``[5, 3]``, ``sizes`` int64 ``[3, num_classes]``: recorded
    pauses by generation and length. ``pid``: who has the place, 0 for nobody.
    """

    def __init__(self) -> None:
        self.totals = np.zeros((len(SUMS), GENERATIONS), np.int64)
        self.sizes = np.zeros((GENERATIONS, len(BOUNDS_SECONDS) + 1), np.int64)
        self.pid = self.images = 0

    def copy(self) -> "Sums":
        """As they are now."""
        copied = Sums()
        copied.totals, copied.sizes = self.totals.copy(), self.sizes.copy()
        copied.pid, copied.images = self.pid, self.images
        return copied


def kind_of(name: str) -> str:
    """A process's name without the number that `multiprocessing` gives to each."""
    return _NUMBERED.sub("", name)


class CounterSeries:
    """Sums by place, which another thread may ask for. Beyond 256 places all are one."""

    OTHER = Place("other", "other", 0)

    def __init__(self) -> None:
        self._sums: dict[Place, Sums] = {}
        self._taken = set[Place]()
        self._lock = Lock()

    def enter(self, name: str, role: str, pid: int, *, has_begun: bool = True) -> Place:
        """The place of an image that has begun, or else is called so from now on."""
        with self._lock:
            number = 0
            while (place := Place(kind_of(name), role, number)) in self._taken:
                number += 1
            if place not in self._sums and len(self._sums) >= _MOST:
                place = self.OTHER
            sums = self._sums.setdefault(place, Sums())
            sums.images += has_begun
            if place != self.OTHER:
                sums.pid = pid
                self._taken.add(place)
            return place

    def leave(self, place: Place) -> None:
        """Its image has ended, or is called otherwise."""
        with self._lock:
            self._taken.discard(place)
            self._sums[place].pid = 0

    def add(self, place: Place, totals: Int64Array, sizes: Int64Array) -> None:
        """What has come since, all of it or nothing for who asks meanwhile."""
        with self._lock:
            sums = self._sums[place]
            sums.totals += totals
            sums.sizes += sizes

    def now(self) -> list[tuple[Place, Sums]]:
        """All of them as they are, in the order in which they came."""
        with self._lock:
            return [(place, sums.copy()) for place, sums in self._sums.items()]
