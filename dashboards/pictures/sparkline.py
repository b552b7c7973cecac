"""A series in the space of a word: drawn so that noise looks like noise, and told in words."""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from dashboards.content.series import ChartSeries
from harness.tracking.verdict import SeriesVerdict

LAST = 60
"""Commits that one shows."""

_NOISE = 5
"""A sparkline shows at least so many times the series' noise to either side of its middle."""


class Sparkline(NamedTuple):
    """``points``: of a polyline in a box of 100 × 24. ``words``: what it shows, for who cannot see
    it. Both are empty for fewer than two values.
    """

    points: str
    words: str


def sparkline(series: ChartSeries, judged: SeriesVerdict) -> Sparkline:
    """The last commits of a series."""
    kept = series.points[-LAST:]
    values = [v if v is not None and isfinite(v) else None for v in (p.value for p in kept)]
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return Sparkline("", "")
    noise = judged.findings.noise
    share = max(series.noise_floor, _NOISE * noise if isfinite(noise) else 0.0)
    words = (
        f"{len(known)} commits, from {series.shown(min(known))} to {series.shown(max(known))}, "
        f"the last {series.shown(known[-1])}"
    )
    return Sparkline(polyline(values, share, series.least_change), words)


def polyline(values: Sequence[float | None], share: float, least: float = 0.0) -> str:
    """Points in the box, the middle of the values halfway up; "" for fewer than two values.

    Values are finite or None. It shows at least ``share`` of the middle to either side of it, and
    at least ``least``.
    """
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return ""
    low, high = min(known), max(known)
    middle = low / 2 + high / 2  # a sum of two might be beyond the largest float
    half = max(high / 2 - low / 2, abs(middle) * share, least, 1e-300)
    across = 98 / (len(values) - 1)
    return " ".join(
        f"{1 + place * across:.4g},{12 - 10 * (value - middle) / half:.3g}"
        for place, value in enumerate(values)
        if value is not None
    )
