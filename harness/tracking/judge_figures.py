"""The judgement of every series that a frame of figures holds."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import NamedTuple

import pandas as pd

from harness.tracking.detect.change import Rerun
from harness.tracking.detect.from_figures import commits_in_order, series_of
from harness.tracking.detect.page import MachineEvent, examine_page
from harness.tracking.triage import Triage
from harness.tracking.verdict import Key, SeriesVerdict, judge


class Judgement(NamedTuple):
    """The verdict on each series, and what befell a machine's series all at once."""

    verdicts: dict[Key, SeriesVerdict]
    events: list[MachineEvent]


def judge_all(
    figures: pd.DataFrame,
    reruns: Mapping[Key, Sequence[Rerun]],
    triage: Triage,
    today: date,
    look: Callable[[int, int], None] = lambda done, total: None,
) -> Judgement:
    """All current series of ``figures``; ``look`` is told before each how many are done of all."""
    newest = _newest(figures)
    all_series = series_of(figures)
    page = examine_page(all_series, commits_in_order(figures), reruns, triage.resets, look)
    verdicts: dict[Key, SeriesVerdict] = {}
    for key, series in all_series.items():
        is_stale = series.points[-1].commit != newest[key[:2]]
        verdicts[key] = judge(series, page.findings[key], triage, today, key=key, is_stale=is_stale)
    return Judgement(verdicts, page.events)


def _newest(figures: pd.DataFrame) -> dict[tuple[str, str], str]:
    """The newest commit of each machine and environment."""
    columns = ["machine", "environment", "commit"]
    current = figures.loc[figures["is_current"], [*columns, "date", "measured"]]
    current = current.sort_values(["date", "measured"], kind="stable")
    newest = current.drop_duplicates(columns[:2], keep="last")[columns].astype(str)
    return {(machine, environment): commit for machine, environment, commit in newest.to_numpy()}
