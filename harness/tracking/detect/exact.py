"""What repeats to the digit has changed or has not: seen at the first commit, without chance."""

import math
from collections.abc import Sequence
from itertools import pairwise

from harness.tracking.detect.change import Change, Findings, verdict
from harness.tracking.detect.series import Point, Series


def examine_exact(
    series: Series, points: Sequence[Point], notes: list[str], resets: Sequence[int]
) -> Findings:
    """Each value against the level's first: what creeps is found where it passes the floor."""
    changes, anchor = list[Change](), points[0].value
    for place in range(1, len(points)):
        one, other = points[place - 1], points[place]
        if place in resets:
            anchor = other.value
        elif series.differs(anchor, other.value):
            changes.append(_change(series, one, other, place, anchor))
            anchor = other.value
    odd = sorted(
        {
            one.commit[:12]
            for one, other in pairwise(points)
            if one.commit == other.commit and series.differs(one.value, other.value)
        }
    )
    if odd:
        notes.append(f"called exact, and yet {', '.join(odd)} gave different values")
    is_enough = len(points) > 1
    if not is_enough:
        notes.append("1 point, and a change needs 2")
    return Findings(is_enough, tuple(changes), points[-1].value, 0.0, tuple(notes))


def _change(series: Series, one: Point, other: Point, place: int, before: float) -> Change:
    after = other.value
    ratio = after / before if before > 0 and after > 0 else math.nan
    return Change(
        series.name,
        series.metric,
        one.commit,
        other.commit,
        place,
        place,
        (other.commit,),
        (other.commit,),
        None,
        before,
        after,
        ratio,
        (ratio, ratio),
        0.0,
        verdict(series, before, after),
        "machine" if one.commit == other.commit else "found",
    )
