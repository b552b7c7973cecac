"""The tables of `gcbench history`: what was read, and what changed between two commits."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from harness import format as fmt
from harness.report.series_words import LABELS, counts_sentence
from harness.report.table import PlainTable, Row
from harness.tracking.frames import parameter_columns
from harness.tracking.history import History
from harness.tracking.verdict import Word

_CAPTION = (
    "before, after and change compare the two commits; the verdict rests on the whole history "
    "between them and on which way the metric is better"
)
_GROUPS = (
    ("worse", "better", "changed"),
    ("suspicious", "inconclusive"),
    ("same", "no_change_shown"),
    ("insufficient", "reset"),
    ("missing",),
)


def history_pairs(history: History) -> list[tuple[str, str]]:
    """What was read, as (label, words)."""
    figures, trials, failures = history.figures, history.trials, history.failures
    lines = []
    if len(figures):
        first, last = (
            f"{date:%Y-%m-%d}" for date in (figures["date"].min(), figures["date"].max())
        )
        old = int((~figures["is_current"]).sum())
        set_apart = f", {fmt.count(old)} of them of benchmarks as they were before" if old else ""
        lines += [
            ("commits", f"{figures['commit'].nunique()}, of {first} to {last}"),
            ("machines", ", ".join(figures["machine"].unique())),
            ("environments", ", ".join(figures["environment"].unique())),
            ("figures", f"{fmt.count(len(figures))}{set_apart}"),
        ]
    if len(trials) or len(failures):
        experiments = {*trials["experiment"].unique(), *failures["experiment"].unique()}
        measured = len(trials[["experiment", "round", "place", "mode"]].drop_duplicates())
        lines.append(
            (
                "raw trials",
                f"{fmt.count(measured)} with a result and {fmt.count(len(failures))} without, "
                f"in {len(experiments)} experiment{'s' * (len(experiments) != 1)}",
            )
        )
    return lines


def history_headline(changes: pd.DataFrame) -> str:
    """How many series changed, in a line."""
    found = {str(word): int(n) for word, n in changes["verdict"].value_counts().items()}
    signs = {word: found[word] for word in ("worse", "better", "changed") if found.get(word)}
    if not signs:
        return f"{LABELS['no_change_shown']}: {counts_sentence(_counted(found), 0) or 'no series'}"
    first = LABELS[next(word for word in LABELS if word in signs)][0]
    return f"{first} {counts_sentence(_counted(found), 0)}"


def _counted(found: dict[str, int]) -> dict[Word, int]:
    return {word: found[word] for word in LABELS if found.get(word)}


def changes_tables(changes: pd.DataFrame, *, details: bool = True) -> list[PlainTable]:
    """A table for each machine, environment and pair of commits, what changed first.

    Where all is missing there is none: `not_compared` says so. Without ``details`` only what may
    have changed has a row.
    """
    parameters = parameter_columns_of(changes)
    tables = []
    groups_shown = _GROUPS if details else _GROUPS[:2]
    for title, rows in _parts(changes):
        records = {
            group: rows[rows["verdict"].isin(group)].to_dict("records") for group in groups_shown
        }
        groups = [[_row(row, parameters) for row in group] for group in records.values() if group]
        if groups and not (rows["verdict"] == "missing").all():
            tables.append(
                PlainTable(title, ("series", "before", "after", "change", "verdict"), groups)
            )
    return [*tables[:-1], *(table._replace(caption=_CAPTION) for table in tables[-1:])]


def not_compared(changes: pd.DataFrame) -> list[str]:
    """Where no series has a value on both sides, in words."""
    return [
        f"{title}: no series has both; {_measured(rows, 'before')} before, "
        f"{_measured(rows, 'after')} after"
        for title, rows in _parts(changes)
        if (rows["verdict"] == "missing").all()
    ]


def _parts(changes: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    by = ["machine", "environment", "base", "head"]
    for names, rows in changes.groupby(by, observed=True, sort=False):
        machine, environment, base, head = map(str, names)
        yield f"{base[:8]} → {head[:8]} on {machine}, {environment}", rows


def _measured(rows: pd.DataFrame, side: str) -> str:
    return f"{fmt.count(int(rows[side].notna().sum()))} of {fmt.count(len(rows))}"


def parameter_columns_of(changes: pd.DataFrame) -> list[str]:
    """The columns of a frame of changes that are parameters."""
    own = {"base", "head", "before", "after", "ratio", "verdict", "suspects"}
    return [name for name in parameter_columns(changes) if name not in own]


def _row(change: dict[Any, Any], parameters: list[str]) -> Row:
    values = [str(change[name]) for name in parameters if not pd.isna(change[name])]
    unit = fmt.short_unit(change["unit"])
    return (
        " · ".join((f"{change['suite']}.{change['metric']}".lstrip("."), *values)),
        fmt.with_unit(change["before"], unit).strip(),
        fmt.with_unit(change["after"], unit).strip(),
        _change(change["ratio"]),
        LABELS[change["verdict"]],
    )


def _change(ratio: float) -> str:
    """In percent, as a factor from ten times on."""
    share = ratio - 1
    return fmt.percent(share, signed=True) if not share >= 9 else fmt.ratio(ratio)
