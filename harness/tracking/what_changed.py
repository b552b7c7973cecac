"""From stored results to what changed in each of their series."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pandas as pd

from engines.nearest import nearest
from harness.tracking.changes import changes, latest_changes
from harness.tracking.event_words import event_sentence
from harness.tracking.frames import SERIES, parameters_by_series
from harness.tracking.history import History
from harness.tracking.history_result import HistoryResult, Read, SeriesChange
from harness.tracking.judge_figures import judge_all
from harness.tracking.reruns import by_series
from harness.tracking.triage import NOTHING_SAID, load_triage


def what_changed(
    found: History,
    name: str,
    *,
    between: tuple[str, str] | None = None,
    command: str = "",
    today: date | None = None,
    look: Callable[[int, int], None] = lambda done, total: None,
) -> HistoryResult:
    """Two commits, by the beginnings of their hashes, or the last two of each series.

    ``name``: where the results are. ``look``: as `judge_all` has it. Raises ValueError for a commit
    that is not there, or whose
    history is rewritten.
    """
    figures, beside = found.figures, found.config
    triage = load_triage(beside.parent / "triage.toml") if beside else NOTHING_SAID
    today = today or datetime.now(UTC).date()
    verdicts, events = judge_all(figures, by_series(found.reruns), triage, today, look)
    for prefix in between or ():
        if gone := [each for each in found.rewritten if each.startswith(prefix.lower() or "-")]:
            raise ValueError(
                f"{gone[0][:12]} is no longer in the history of a branch of {beside}; "
                "name commits that are"
            )
    if between and len(figures):
        table = changes(figures, verdicts, *between)
    else:
        table = latest_changes(figures, verdicts)
    return HistoryResult(
        name=name,
        command=command,
        between=between,
        read=_read(found),
        changes=_series(table, parameters_by_series(found.parameters)),
        problems=found.problems,
        notes=[event_sentence(event) for event in events],
    )


def of_metrics(found: History, metrics: Sequence[str]) -> History:
    """The same with the figures of these metrics only. Raises ValueError for an unknown one."""
    figures = found.figures
    if figures.empty:
        return found
    known = sorted(map(str, figures["metric"].unique()))
    for metric in metrics:
        if metric not in known:
            near = ", ".join(nearest(metric, known))
            raise ValueError(f"no metric {metric!r} in these results; did you mean {near}?")
    return found._replace(figures=figures[figures["metric"].isin(metrics)])


def _read(found: History) -> Read:
    figures, trials, failures = found.figures, found.trials, found.failures
    dates = figures["date"].dt.strftime("%Y-%m-%d")
    first, last = (dates.min(), dates.max()) if len(dates) else ("", "")
    return Read(
        commits=figures["commit"].nunique(),
        first=first,
        last=last,
        machines=list(figures["machine"].unique()),
        environments=list(figures["environment"].unique()),
        figures=len(figures),
        outdated=int((~figures["is_current"]).sum()),
        trials=len(trials[["experiment", "round", "place", "mode"]].drop_duplicates()),
        failures=len(failures),
        experiments=len({*trials["experiment"].unique(), *failures["experiment"].unique()}),
    )


_OWN = ("suite", "metric", "unit", "direction", "kind", "base", "head")


def _series(table: pd.DataFrame, parameters: Mapping[str, Mapping[str, Any]]) -> list[SeriesChange]:
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    return [_change(row, parameters[str(row["series"])]) for row in rows]


def _change(row: dict[Any, Any], parameters: Mapping[str, Any]) -> SeriesChange:
    return SeriesChange(
        **{name: "" if row[name] is None else str(row[name]) for name in (*SERIES, *_OWN)},
        parameters=dict(parameters),
        before=row["before"],
        after=row["after"],
        verdict=row["verdict"],
        suspects=row["suspects"],
    )
