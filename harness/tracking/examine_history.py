"""Every series of a history examined, with the re-runs and the triage that are known of it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from harness.tracking.detect.change import Change, Findings, Rerun
from harness.tracking.detect.examine import examine
from harness.tracking.detect.from_figures import series_of
from harness.tracking.detect.search import RECENT
from harness.tracking.detect.series import Series
from harness.tracking.triage import Triage

Key = tuple[str, str, str]
"""Machine, environment, series."""

RECENT_POINTS = RECENT
"""A change is recent for so many points of its series, so that a weekend hides none."""


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


def recent_alerts(series: Series, findings: Findings) -> list[Change]:
    """What became certain in the last `RECENT_POINTS` points of a series."""
    first = len(series.points) - RECENT_POINTS
    return [change for change in findings.changes if change.is_alert and change.found >= first]
