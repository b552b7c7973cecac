"""One line of values across commits, and what tells a change of it from none."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from harness.metrics import Direction, Metric, MetricKind, differs


class Point(NamedTuple):
    """What one night gave of one commit; NaN where nothing.

    ``interval``, else ``samples``, say how well it was measured.
    """

    commit: str
    value: float
    interval: tuple[float, float] | None = None
    samples: Sequence[float | None] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """Points in the order of their commits. Floors as in `harness.metrics.Metric`."""

    points: tuple[Point, ...]
    name: str = ""
    metric: str = ""
    direction: Direction = "lower"
    kind: MetricKind = "timing"
    noise_floor: float = Metric._field_defaults["noise_floor"]
    least_change: float = 0.0

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
