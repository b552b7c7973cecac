"""One series, from its points to its changes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from harness.tracking.detect.change import Change, Findings, Rerun
from harness.tracking.detect.exact import examine_exact
from harness.tracking.detect.series import PointColumns, Series
from harness.tracking.detect.timing import AskRerun, examine_timing
from harness.tracking.detect.weigh import OF_ONE, StepLimits


def examine(
    series: Series,
    reruns: Sequence[Rerun] = (),
    resets: Sequence[str] = (),
    ask: AskRerun | None = None,
    limits: StepLimits = OF_ONE,
    limits_on: Mapping[int, StepLimits] = MappingProxyType({}),
) -> Findings:
    """All changes of a series, as known at its newest point.

    ``reruns`` are two commits measured side by side; ``resets`` are commits (or their beginnings)
    at which a new level begins by decree; ``ask`` is called for a re-run on each night there would
    have been a suspicion (in simulations). ``limits`` are of timings; ``limits_on`` some points
    stand for them. Points without a finite value are left out, with a
    note. Places are indices of ``series.points``.
    """
    notes = list[str]()
    all_points = PointColumns.of(series.points)
    usable = np.flatnonzero(np.isfinite(all_points.values))
    odd = int(np.isinf(all_points.values).sum())
    if odd:
        notes.append(f"{odd} infinite values, left out")
    missing = len(all_points) - len(usable) - odd
    if missing:
        notes.append(f"{missing} points without a value, left out")
    if not len(usable):
        return Findings(False, (), math.nan, math.nan, (*notes, "no point has a value"))
    points = all_points.pick(usable)
    began = _places(all_points, usable, resets, notes)
    if series.kind == "exact":
        found = examine_exact(series, list(points), notes, began)
    else:
        found = examine_timing(
            series,
            points,
            notes,
            reruns=reruns,
            resets=began,
            ask=ask,
            limits=limits,
            limits_on={n: limits_on[of] for n, of in enumerate(usable.tolist()) if of in limits_on},
        )
    changes = tuple(
        replace(change, place=int(usable[change.place]), found=int(usable[change.found]))
        for change in found.changes
    )
    return replace(found, changes=changes, resets=tuple(int(usable[place]) for place in began))


def detect(
    series: Series, reruns: Sequence[Rerun] = (), resets: Sequence[str] = ()
) -> list[Change]:
    """The changes alone, oldest first; the last may be a suspicion. As `examine`."""
    return list(examine(series, reruns, resets).changes)


def _places(
    points: PointColumns, usable: NDArray[np.int64], resets: Sequence[str], notes: list[str]
) -> list[int]:
    """Where levels begin by decree, as indices of the usable points."""
    places = list[int]()
    for reset in resets:
        at = next((n for n, each in enumerate(points.commits) if each.startswith(reset)), None)
        if at is None or not reset:
            notes.append(f"the baseline is reset at {reset!r}, which is no commit of this series")
            continue
        after = [n for n, of in enumerate(usable) if of >= at]
        places += after[:1]
    return places
