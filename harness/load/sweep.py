"""Where a server's throughput ends: loads at ever higher rates, or with ever more streams.

Far beyond its knee a server gives its capacity, which one load tells with an interval; so the
search climbs by doubling until a load is well behind, and then looks around what it found.
"""

from collections.abc import Callable
from math import sqrt
from typing import Literal

import msgspec

from harness.load.goodput import Goodput
from harness.load.steady import SteadyRate
from harness.load.task import Asked
from harness.result.result import Result

SweepKind = Literal["rate", "concurrency"]

BEHIND = 0.9
"""A server that gives less than this share of what it is asked is beyond its knee, and so is one
that gave more than this share of it with half as many streams."""
ATTAINED = 0.99
"""Of the attempted requests so many keep the objectives where these are kept."""
MAX_ERROR = 0.025
BELOW = 0.75
"""Of capacity: up to there streams are as fast as they are short of the knee. Alone one is faster:
an idle server begins at once, a busy one with its next step."""
_MOST_POINTS = 24
_MOST_REPEATS = 3
_MOST_TRIES = 4
_AROUND = (0.5, 0.8, 0.9, 1.1)
_NEAR = 0.05
_BRACKET = 0.05


class SweepPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One load at ``asked`` requests per second, or with so many streams. ``run``: where it is
    kept; ``invalid``: why it may not be believed, "" for nothing. Latencies in seconds.
    """

    asked: float
    run: str
    invalid: str
    steady: SteadyRate | None
    latencies: dict[str, float | None]
    output_throughput: float | None
    goodput: Goodput | None = None


class Knee(msgspec.Struct, frozen=True, kw_only=True):
    """``value`` of what was varied, from which on the server gives no more, with its 95 %
    interval; ``capacity``: requests per second there.
    """

    value: float
    ci95: tuple[float, float]
    capacity: float


class SweepResult(Result, frozen=True, kw_only=True, tag="sweep"):
    """``points`` in the order of what was varied. ``knee``: None where none was found, for the
    reason in the notes. ``kept``: what was varied where the objectives were still kept and where
    no longer, None without objectives, or where they were never, or always, kept.
    """

    kind_of: SweepKind
    asked: Asked
    points: list[SweepPoint]
    knee: Knee | None
    kept: tuple[float, float] | None = None
    objectives: dict[str, float] = {}

    @property
    def is_valid(self) -> bool:
        """Whether there is a knee, each load of it valid."""
        return self.knee is not None


class InvalidPointError(Exception):
    """A load was invalid again and again, so nothing follows from it."""


class KneeError(Exception):
    """There is none where it was looked for."""


class KneeSearch:
    """``load``: makes one load at so many requests per second, or with so many streams."""

    def __init__(self, kind: SweepKind, load: Callable[[float], SweepPoint]) -> None:
        self._kind, self._load = kind, load
        self.points: list[SweepPoint] = []

    def knee(self, start: float) -> Knee:
        """Raises InvalidPointError, KneeError."""
        last = self._point(start)
        while not self._is_behind(last):
            if len(self.points) >= _MOST_POINTS:
                raise KneeError(f"the server kept up with {last.asked:g}; begin higher")
            last = self._point(2 * last.asked)
        capacity, half = self._capacity(last.asked)
        if self._kind == "concurrency":
            return self._streams(capacity, half)
        return Knee(value=capacity, ci95=(capacity - half, capacity + half), capacity=capacity)

    def around(self, knee: Knee) -> None:
        """Look on both sides of it, where that has not been done. Raises InvalidPointError."""
        for share in _AROUND:
            wanted = knee.value * share
            wanted = wanted if self._kind == "rate" else max(1.0, round(wanted))
            if all(abs(each.asked / wanted - 1) > _NEAR for each in self.points):
                self._point(wanted)

    def kept(self) -> tuple[float, float] | None:
        """Between which two values the objectives cease to be kept."""
        while True:
            ordered = sorted(self.points, key=lambda each: each.asked)
            lost = [each.asked for each in ordered if not _keeps(each)]
            if not lost:
                return None
            high = lost[0]
            below = [each.asked for each in ordered if each.asked < high]
            if not below:
                return None
            low = below[-1]
            middle = sqrt(low * high) if self._kind == "rate" else float((low + high) // 2)
            if high / low <= 1 + _BRACKET or middle in (low, high):
                return low, high
            self._point(middle)

    def _point(self, value: float) -> SweepPoint:
        found = self._load(value)
        for _ in range(_MOST_TRIES - 1):
            if not found.invalid:
                break
            found = self._load(value)
        self.points.append(found)
        if found.invalid or found.steady is None:
            why = found.invalid or "too short to say what it gives; --duration asks for more"
            raise InvalidPointError(f"the load of {value:g} is invalid: {why}")
        return found

    def _is_behind(self, point: SweepPoint) -> bool:
        """Surely, so by the upper end of what it gave: of few requests that may be far off."""
        assert point.steady is not None
        most = point.steady.ci95[1]
        if self._kind == "rate":
            return most < BEHIND * point.steady.sent
        if len(self.points) < 2:
            return False
        before = self.points[-2].steady
        assert before is not None
        return most < before.served / BEHIND

    def _capacity(self, value: float) -> tuple[float, float]:
        """Requests per second at a load that is beyond the knee, and half their interval.

        Loads again while the interval is too wide, and weighs each by its own.
        """
        weights, total = 0.0, 0.0
        for repeat in range(_MOST_REPEATS):
            steady = self.points[-1].steady if not repeat else self._point(value).steady
            assert steady is not None
            low, high = steady.ci95
            weight = 1 / max((high - low) / 2, 1e-6 * steady.served) ** 2
            weights, total = weights + weight, total + weight * steady.served
            capacity, half = total / weights, 1 / sqrt(weights)
            if half <= MAX_ERROR * capacity:
                break
        return capacity, half

    def _streams(self, capacity: float, half: float) -> Knee:
        """By Little's law: so many streams as are busy at capacity, each as fast as short of it."""
        found = [(each.asked, each.steady) for each in self.points if each.steady is not None]
        short = [each for each in found if each[1].served <= BELOW * capacity]
        streams, steady = max(short, key=lambda each: each[0]) if short else found[0]
        low, high = steady.ci95
        error = sqrt((half / capacity) ** 2 + ((high - low) / 2 / steady.served) ** 2)
        value = capacity * streams / steady.served
        return Knee(value=value, ci95=(value * (1 - error), value * (1 + error)), capacity=capacity)


def _keeps(point: SweepPoint) -> bool:
    return point.goodput is not None and point.goodput.share >= ATTAINED
