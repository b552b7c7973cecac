"""One series, from its points to its changes."""

import math
from collections.abc import Sequence
from dataclasses import replace

from harness.tracking.detect.change import Change, Findings, Rerun
from harness.tracking.detect.exact import examine_exact
from harness.tracking.detect.series import Series
from harness.tracking.detect.timing import AskRerun, examine_timing


def examine(
    series: Series,
    reruns: Sequence[Rerun] = (),
    resets: Sequence[str] = (),
    ask: AskRerun | None = None,
) -> Findings:
    """All changes of a series, as known at its newest point.

    ``reruns`` are two commits measured side by side; ``resets`` are commits (or their beginnings)
    at which a new level begins by decree; ``ask`` is called for a re-run on each night there would
    have been a suspicion (in simulations). Points without a finite value are left out, with a
    note. Places are indices of ``series.points``.
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
        return Findings(False, (), math.nan, math.nan, (*notes, "no point has a value"))
    points = [series.points[n] for n in usable]
    began = _places(series, usable, resets, notes)
    if series.kind == "exact":
        found = examine_exact(series, points, notes, began)
    else:
        found = examine_timing(series, points, notes, reruns=reruns, resets=began, ask=ask)
    changes = tuple(
        replace(change, place=usable[change.place], found=usable[change.found])
        for change in found.changes
    )
    return replace(found, changes=changes, resets=tuple(usable[place] for place in began))


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
