"""What the detector is worth at the noise of the histories at hand: simulated on that noise.

What is left over of each history, its levels taken off, is drawn from with replacement, accidents
included; then a step is put in or not. The re-run's help is not in it.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from harness.metrics import MetricKind
from harness.statistics.mixture import FloatArray
from harness.tracking.detect.examine import examine
from harness.tracking.detect.series import Series
from harness.tracking.detect.simulate import planted

STEPS = (0.04, 0.08, 0.15)
WITHIN = (3, 5, 10)
NIGHTS = 60
FEW_POINTS = 30
"""Below these the noise that is drawn from says little of the nights to come: an accident among 13
comes back once in 13 nights."""
_BEFORE = 30


class SelfTest(NamedTuple):
    """``false_alerts``: share of ``repetitions`` histories of 60 nights without a change in which
    there is an alert.

    ``found[step][n]``: share of steps found within ``WITHIN[n]`` nights; ``nights[step]``: nights
    after which half of them are found, None where half are not within ``WITHIN[-1]``. None where
    ``why`` says why not: too few points, values that are not above 0, or an exact metric, which
    needs none.
    """

    series: str
    metric: str
    kind: MetricKind
    points: int
    noise: float
    false_alerts: float | None
    found: dict[float, tuple[float, ...]] | None
    why: str = ""
    nights: dict[float, int | None] | None = None
    repetitions: int = 0


def self_test(
    series_list: Sequence[Series], repetitions: int = 50, seed: int = 0
) -> list[SelfTest]:
    """One row a series, in their order; about two seconds each at 50 repetitions."""
    return [
        _test(each, repetitions, np.random.default_rng([seed, n]))
        for n, each in enumerate(series_list)
    ]


def _test(series: Series, repetitions: int, rng: np.random.Generator) -> SelfTest:
    findings = examine(series)
    values = [point.value for point in series.points if math.isfinite(point.value)]
    row = SelfTest(series.name, series.metric, series.kind, len(values), findings.noise, None, None)
    if series.kind == "exact":
        return row._replace(why="exact: each change is seen at its first commit")
    if not findings.is_enough:
        return row._replace(why="too few points")
    if min(values) <= 0:
        return row._replace(why="values that are not above 0")
    left = _left_over(series, [change.place for change in findings.changes if change.is_alert])
    level = float(np.median(values))
    false = sum(
        bool(_alerts(series, rng.choice(left, NIGHTS), level, NIGHTS, 0.0))
        for _ in range(repetitions)
    )
    found = dict[float, tuple[float, ...]]()
    nights = dict[float, int | None]()
    for step in STEPS:
        delays = [
            min(
                _alerts(series, rng.choice(left, _BEFORE + max(WITHIN)), level, _BEFORE, step),
                default=math.inf,
            )
            for _ in range(repetitions)
        ]
        found[step] = tuple(sum(d <= n for d in delays) / repetitions for n in WITHIN)
        middle = sorted(delays)[(repetitions - 1) // 2]
        nights[step] = int(middle) if middle <= max(WITHIN) else None
    return row._replace(
        false_alerts=false / repetitions, found=found, nights=nights, repetitions=repetitions
    )


def _alerts(series: Series, logs: FloatArray, level: float, place: int, step: float) -> list[int]:
    """Nights that each alert took, counted from the step; all of them where there is no step."""
    made = planted(logs + math.log(level), place, step)
    points = Series.of(made.values.tolist()).points
    judged = Series(points, noise_floor=series.noise_floor, least_change=series.least_change)
    nights = [change.found for change in examine(judged).changes if change.is_alert]
    return [night - place + 1 for night in nights if step == 0 or night >= place]


def _left_over(series: Series, places: Sequence[int]) -> FloatArray:
    """Logs less the median of their level."""
    ends = [0, *places, len(series.points)]
    left = list[float]()
    for one, other in pairwise(ends):
        logs = [math.log(p.value) for p in series.points[one:other] if math.isfinite(p.value)]
        middle = float(np.median(logs)) if logs else 0.0
        left += [log - middle for log in logs]
    return np.array(left)
