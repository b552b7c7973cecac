"""Among many series those that no step can be seen in: all of them at once, without a walk."""

from collections.abc import Mapping

import numpy as np

from harness.statistics.mixture import FloatArray
from harness.tracking.detect.bounds import WINDOW
from harness.tracking.detect.change import Findings
from harness.tracking.detect.evidence import StepEvidence
from harness.tracking.detect.page_past import Of
from harness.tracking.detect.scale import Scale
from harness.tracking.detect.series import PointColumns, Series
from harness.tracking.detect.shapes import Rows, fit_level
from harness.tracking.detect.timing import evidence_of
from harness.tracking.detect.weigh import LEAST_NIGHTS, StepLimits


def without_a_step(
    all_series: Mapping[Of, Series], gains: Mapping[Of, FloatArray], limits: StepLimits
) -> dict[Of, Findings]:
    """What `examine` would find of them, nothing, without re-runs and resets.

    Of those with `gains_of`; none where ``limits`` are not by a series' own past.
    """
    found: dict[Of, Findings] = {}
    if not limits.by_own_past:
        return found
    groups: dict[tuple[int, float], dict[Of, tuple[StepEvidence, Scale]]] = {}
    for key, gain in gains.items():
        most = gain[LEAST_NIGHTS - 1 :]
        if (most < limits.certain).all() and most[-1] < limits.suspect:
            series = all_series[key]
            evidence, scale = evidence_of(series, PointColumns.of(series.points))
            alike = len(evidence.values), evidence.least_scale
            groups.setdefault(alike, {})[key] = evidence, scale
    for (nights, least), group in groups.items():
        last = slice(max(nights - WINDOW, 0), nights)
        values = np.array([evidence.values[last] for evidence, _ in group.values()])
        weight = np.array([evidence.weight[last] for evidence, _ in group.values()])
        now = fit_level(Rows(values, weight, np.ones_like(values)), least)
        for n, (key, (_, scale)) in enumerate(group.items()):
            level = scale.back(float(now.level[n]))
            found[key] = Findings(True, (), level, float(now.scale[n]), ())
    return found
