"""One line of values across commits, and what tells a change of it from none."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from harness.metrics import Direction, Metric, MetricKind, differs
from harness.statistics.mixture import FloatArray


class Point(NamedTuple):
    """What one night gave of one commit; NaN where nothing.

    ``interval``, else ``samples``, say how well it was measured; ``weight`` is less than 1 on a
    night on which all series lay widely apart.
    """

    commit: str
    value: float
    interval: tuple[float, float] | None = None
    samples: Sequence[float | None] = ()
    weight: float = 1.0


class PointColumns(Sequence[Point]):
    """The same by column, so that of a million points there are no million objects.

    ``low`` and ``high`` of intervals, NaN where there is none.
    """

    __slots__ = ("commits", "high", "low", "samples", "values", "weights")

    def __init__(
        self,
        commits: Sequence[str],
        values: FloatArray,
        low: FloatArray,
        high: FloatArray,
        samples: Sequence[Sequence[float | None]],
        weights: FloatArray,
    ) -> None:
        self.commits, self.values, self.low, self.high = commits, values, low, high
        self.samples, self.weights = samples, weights

    @classmethod
    def of(cls, points: Sequence[Point]) -> "PointColumns":
        """Of points one by one, or as they are."""
        if isinstance(points, cls):
            return points
        ends = np.array([point.interval or (math.nan, math.nan) for point in points])
        low, high = ends.reshape(-1, 2).T
        return cls(
            [point.commit for point in points],
            np.array([point.value for point in points], np.float64),
            low,
            high,
            [point.samples for point in points],
            np.array([point.weight for point in points], np.float64),
        )

    def __len__(self) -> int:
        return len(self.commits)

    @overload
    def __getitem__(self, place: int) -> Point: ...
    @overload
    def __getitem__(self, place: slice) -> "PointColumns": ...
    def __getitem__(self, place: int | slice) -> "Point | PointColumns":
        if isinstance(place, slice):
            return self.pick(np.arange(len(self))[place])
        low, high = float(self.low[place]), float(self.high[place])
        return Point(
            self.commits[place],
            float(self.values[place]),
            None if math.isnan(low) or math.isnan(high) else (low, high),
            self.samples[place],
            float(self.weights[place]),
        )

    def __iter__(self) -> Iterator[Point]:
        return map(self.__getitem__, range(len(self)))

    def pick(self, places: NDArray[np.int64]) -> "PointColumns":
        """These alone."""
        return PointColumns(
            [self.commits[n] for n in places],
            self.values[places],
            self.low[places],
            self.high[places],
            [self.samples[n] for n in places],
            self.weights[places],
        )

    def weighed(self, values: FloatArray, weights: FloatArray) -> "PointColumns":
        """The same with other values and weights."""
        return PointColumns(self.commits, values, self.low, self.high, self.samples, weights)


@dataclass(frozen=True, slots=True)
class Series:
    """Points in the order of their commits. Floors as in `harness.metrics.Metric`."""

    points: Sequence[Point]
    name: str = ""
    metric: str = ""
    direction: Direction = "lower"
    kind: MetricKind = "timing"
    noise_floor: float = Metric._field_defaults["noise_floor"]
    least_change: float = 0.0
    unit: str = ""

    @classmethod
    def of(
        cls, values: Sequence[float], commits: Sequence[str] | None = None, name: str = ""
    ) -> "Series":
        """A timing of which lower is better; commits are called "0", "1" … where not given.

        Raises ValueError for unequal lengths.
        """
        names = [str(n) for n in range(len(values))] if commits is None else commits
        if len(names) != len(values):
            raise ValueError(f"{len(values)} values and {len(names)} commits: give one of each")
        pairs = zip(names, values, strict=True)
        return cls(tuple(Point(commit, float(value)) for commit, value in pairs), name)

    def by(self, metric: Metric) -> "Series":
        """Judged by a metric of gcbench."""
        return replace(
            self,
            metric=metric.name,
            direction=metric.direction,
            kind=metric.kind,
            noise_floor=metric.noise_floor,
            least_change=metric.least_change,
        )

    def differs(self, before: float, after: float) -> bool:
        """Whether a change is large enough to speak of."""
        return bool(differs(before, after, self.noise_floor, self.least_change))
