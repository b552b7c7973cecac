"""The judgement of every series that a frame of figures holds."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date

import pandas as pd

from harness.tracking.detect.change import Rerun
from harness.tracking.detect.examine import examine
from harness.tracking.detect.from_figures import series_of
from harness.tracking.triage import Triage
from harness.tracking.verdict import Key, SeriesVerdict, judge


def judge_all(
    figures: pd.DataFrame,
    reruns: Mapping[Key, Sequence[Rerun]],
    triage: Triage,
    today: date,
    look: Callable[[int, int], None] = lambda done, total: None,
) -> dict[Key, SeriesVerdict]:
    """All current series of ``figures``; ``look`` is told before each how many are done of all."""
    found: dict[Key, SeriesVerdict] = {}
    newest = _newest(figures)
    all_series = series_of(figures)
    for key, series in all_series.items():
        look(len(found), len(all_series))
        findings = examine(series, reruns.get(key, ()), triage.resets(series))
        is_stale = series.points[-1].commit != newest[key[:2]]
        found[key] = judge(series, findings, triage, today, key=key, is_stale=is_stale)
    return found


def _newest(figures: pd.DataFrame) -> dict[tuple[str, str], str]:
    """The newest commit of each machine and environment."""
    current = figures[figures["is_current"]].sort_values(["date", "measured"], kind="stable")
    columns = (current[name].astype(str) for name in ("machine", "environment", "commit"))
    return {
        (machine, environment): commit
        for machine, environment, commit in zip(*columns, strict=True)
    }
