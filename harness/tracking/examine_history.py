"""Every series of a history examined, with the re-runs and the triage that are known of it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from harness.tracking.detect.change import Findings, Rerun
from harness.tracking.detect.examine import examine
from harness.tracking.detect.from_figures import series_of
from harness.tracking.detect.series import Series
from harness.tracking.triage import Triage

Key = tuple[str, str, str]
"""Machine, environment, series."""

RECENT_POINTS = 7
"""A change is recent_points for so many points of its series, so that a weekend hides none."""


class Examined(NamedTuple):
    """A series and what was found in it."""

    series: Series
    findings: Findings


def examine_all(
    figures: pd.DataFrame, reruns: Mapping[Key, Sequence[Rerun]], triage: Triage
) -> dict[Key, Examined]:
    """All current series of ``figures``."""
    found = {}
    for key, series in series_of(figures).items():
        known, resets = reruns.get(key, ()), triage.resets(series)
        found[key] = Examined(series, examine(series, known, resets, recent_points=RECENT_POINTS))
    return found
