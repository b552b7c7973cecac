"""One series, from its points to its changes and how it stands today."""

import math
from collections.abc import Sequence
from dataclasses import replace

from harness.tracking.detect.change import Change, Findings, Rerun, State
from harness.tracking.detect.exact import examine_exact
from harness.tracking.detect.series import Series
from harness.tracking.detect.timing import AskRerun, examine_timing

_STATES: dict[str, State] = {"worse": "regression", "better": "improvement", "changed": "changed"}


def examine(
    series: Series, reruns: Sequence[Rerun] = (), resets: Sequence[str] = (),
    ask: AskRerun | None = None, recent_points: int = 1,
) -> Findings:  # fmt: skip
    """All changes of a series, and its state at its newest point.

    ``reruns`` are two commits measured side by side; ``resets`` are commits (or their beginnings)
    at which a new level begins by decree; ``ask`` is called for a re-run on each night there would
    have been a suspicion (in simulations). A change stays the state for ``recent_points`` points.
    Points without a finite value are left out, with a note. Places are indices of
    ``series.points``.
    """
    notes = list[str]()
    usable = [n for n, point in enumerate(series.points) if math.isfinite(point.value)]
    odd = sum(math.isinf(point.value) for point in series.points)
    if odd:
        notes.append(f"{odd} infinite values, left out")
    missing = len(series.points) - len(usable) - odd
    if missing:
        notes.append(f"{missing} points without a value, left out")
    if not usable:
        return Findings("insufficient", (), math.nan, math.nan, (*notes, "no point has a value"))
    points = [series.points[n] for n in usable]
    began = _places(series, usable, resets, notes)
    if series.kind == "exact":
        found = examine_exact(series, points, notes, began)
    else:
        found = examine_timing(series, points, notes, reruns=reruns, resets=began, ask=ask)
    state = found.state
    certain = [change for change in found.changes if change.is_alert]
    if certain and certain[-1].found > len(points) - 1 - recent_points:
        state = _STATES[certain[-1].verdict]
    changes = tuple(
        replace(change, place=usable[change.place], found=usable[change.found])
        for change in found.changes
    )
    return replace(found, state=state, changes=changes)


def detect(
    series: Series, reruns: Sequence[Rerun] = (), resets: Sequence[str] = ()
) -> list[Change]:
    """The changes alone, oldest first; the last may be a suspicion. As `examine`."""
    return list(examine(series, reruns, resets).changes)


def _places(
    series: Series, usable: Sequence[int], resets: Sequence[str], notes: list[str]
) -> list[int]:
    """Where levels begin by decree, as indices of the usable points."""
    places = list[int]()
    for reset in resets:
        point = next((n for n, p in enumerate(series.points) if p.commit.startswith(reset)), None)
        if point is None or not reset:
            notes.append(f"the baseline is reset at {reset!r}, which is no commit of this series")
            continue
        after = [n for n, of in enumerate(usable) if of >= point]
        places += after[:1]
    return places
