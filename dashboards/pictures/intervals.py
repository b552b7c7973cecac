"""The picture of an experiment's verdicts: each candidate's interval on one scale of ratios."""

from collections import defaultdict
from collections.abc import Container, Sequence
from math import log
from typing import Literal, NamedTuple

from harness import format as fmt
from harness.experiment.reference import references
from harness.experiment.result import Comparison, ExperimentResult
from harness.report.power import detects
from harness.report.summary import direction_words
from harness.statistics.paired_ratio import MIN_ROUNDS
from harness.statistics.verdict import Verdict

_TICKS = (0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
_APART = 20.0
"""Percent of the width that two labels of ticks are apart at least."""


class IntervalRow(NamedTuple):
    """A candidate in words; ``left``, ``width`` and ``point`` of its interval, in percent."""

    candidate: str
    change: str
    interval: str
    verdict: Verdict | Literal["reference"]
    detects: str
    left: float
    width: float
    point: float


class IntervalPicture(NamedTuple):
    """``band``: where the tolerance begins and how wide it is; ``one``: where nothing changes;
    ``ticks``: place and label. Places are percent of the width, on a logarithmic scale.
    """

    metric: str
    baseline: str
    direction: str
    tolerance: str
    band: tuple[float, float]
    one: float
    ticks: list[tuple[float, str]]
    rows: list[IntervalRow]


def judged_comparisons(result: ExperimentResult) -> list[Comparison]:
    """Those with rounds enough for a verdict."""
    return [each for each in result.comparisons if each.rounds >= MIN_ROUNDS]


def pictures(result: ExperimentResult) -> list[IntervalPicture]:
    """One for each baseline and metric that decides."""
    groups: defaultdict[tuple[str, str], list[Comparison]] = defaultdict(list)
    for each in judged_comparisons(result):
        if min(each.ratio, *each.ci95) > 0:
            groups[each.metric, each.baseline].append(each)
    return [
        _picture(metric, baseline, group, result.tolerance, references(result))
        for (metric, baseline), group in groups.items()
    ]


def _picture(
    metric: str, baseline: str, group: Sequence[Comparison], tolerance: float, off: Container[str]
) -> IntervalPicture:
    low = min(1 - tolerance, *(each.ci95[0] for each in group))
    high = max(1 + tolerance, *(each.ci95[1] for each in group))
    margin = 0.04 * log(high / low)

    def place(ratio: float) -> float:
        return round(100 * (log(ratio / low) + margin) / (log(high / low) + 2 * margin), 2)

    def row(each: Comparison) -> IntervalRow:
        left, right = map(place, each.ci95)
        change = fmt.percent(each.ratio - 1, signed=True)
        verdict = "reference" if each.candidate in off else each.verdict
        return IntervalRow(
            each.candidate,
            change,
            fmt.interval(each.ci95),
            verdict,
            detects(each.mde),
            left,
            round(right - left, 2),
            place(each.ratio),
        )

    one, begins, ends = place(1.0), place(1 - tolerance), place(1 + tolerance)
    ticks = [(one, "0 %")]
    for tick in sorted((tick for tick in _TICKS if low <= tick <= high), key=_farthest_last):
        if all(abs(place(tick) - other) >= _APART for other, _ in ticks):
            ticks.append((place(tick), f"{100 * (tick - 1):+.0f} %"))
    return IntervalPicture(
        metric,
        baseline,
        direction_words(metric),
        fmt.rough_percent(tolerance),
        (begins, round(ends - begins, 2)),
        one,
        sorted(ticks),
        [row(each) for each in group],
    )


def _farthest_last(ratio: float) -> float:
    return abs(log(ratio))
