"""Among many series those that no step can be seen in: all of them at once, without a walk."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np

from harness.tracking.detect.bounds import WINDOW, most_by_night
from harness.tracking.detect.change import Findings
from harness.tracking.detect.evidence import StepEvidence
from harness.tracking.detect.scale import Scale
from harness.tracking.detect.series import PointColumns, Series
from harness.tracking.detect.shapes import Rows, fit_level
from harness.tracking.detect.timing import evidence_of
from harness.tracking.detect.weigh import LEAST_NIGHTS, StepLimits

Of = TypeVar("Of", bound=Hashable)


def without_a_step(all_series: Mapping[Of, Series], limits: StepLimits) -> dict[Of, Findings]:
    """What `examine` would find of them, nothing, without re-runs and resets.

    Of timings with points enough and a value at each; none where ``limits`` are not by a series'
    own past.
    """
    found: dict[Of, Findings] = {}
    if not limits.by_own_past:
        return found
    groups: dict[tuple[int, float], dict[Of, tuple[StepEvidence, Scale]]] = {}
    for key, series in all_series.items():
        points = PointColumns.of(series.points)
        if series.kind == "exact" or len(points) < LEAST_NIGHTS:
            continue
        if np.isfinite(points.values).all():
            evidence, scale = evidence_of(series, points)
            alike = len(points), evidence.least_scale
            groups.setdefault(alike, {})[key] = evidence, scale
    for (nights, least), group in groups.items():
        values = np.array([evidence.values for evidence, _ in group.values()])
        weight = np.array([evidence.weight for evidence, _ in group.values()])
        most = most_by_night(values, least)[:, LEAST_NIGHTS - 1 :]
        is_clear = (most < limits.certain).all(1) & (most[:, -1] < limits.suspect)
        last = slice(max(nights - WINDOW, 0), nights)
        rows = Rows(values[:, last], weight[:, last], np.ones_like(values[:, last]))
        now = fit_level(rows, least)
        for n, (key, (_, scale)) in enumerate(group.items()):
            if is_clear[n]:
                level = scale.back(float(now.level[n]))
                found[key] = Findings(True, (), level, float(now.scale[n]), ())
    return found
