"""What changed last, in one sentence and a list of it."""

from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise
from math import isfinite, log
from typing import NamedTuple

import pandas as pd

from dashboards.series import Key, Series
from harness.tracking.changes import latest_changes

RECENT = timedelta(hours=36)
"""What was measured so long ago was measured last night."""

_ORDER = ("worse", "better", "changed", "same", "missing")


class Change(NamedTuple):
    """A step in a series, from whoever found it: the last commit before it, the first after."""

    key: Key
    last_before: str
    first_after: str
    before: float
    after: float
    verdict: str

    @property
    def ratio(self) -> float | None:
        """After over before, where that is a number."""
        ratio = self.after / self.before if self.before else float("inf")
        return ratio if isfinite(ratio) else None


class News(NamedTuple):
    """``changes``: what changed at the newest commit of its machine and environment, the worst
    first. ``stale``: series that were not measured there.
    """

    sentence: str
    changes: list[Change]
    counts: dict[str, int]
    stale: int


def news(figures: pd.DataFrame, now: datetime) -> News:
    """Compare each series' last two commits, by `harness.tracking.changes`."""
    current = figures[figures["is_current"]] if len(figures) else figures
    if current.empty:
        return News("No commits have been measured here yet.", [], {}, 0)
    places = current.groupby(["machine", "environment"], observed=True)
    newest = {key: str(rows.sort_values(["date", "measured"], kind="stable")["commit"].iloc[-1])
              for key, rows in places}  # fmt: skip
    table = latest_changes(figures)
    heads = [newest.get((machine, environment)) for machine, environment in
             zip(table["machine"], table["environment"], strict=True)]  # fmt: skip
    fresh = table[table["head"].astype(str) == pd.Series(heads, index=table.index, dtype=object)]
    counts = Counter(str(verdict) for verdict in fresh["verdict"])
    found = [_change(row) for row in fresh[fresh["verdict"].isin(_ORDER[:3])].to_dict("records")]
    found.sort(key=lambda change: (_ORDER.index(change.verdict), -_size(change)))
    words = _when(current, now)
    return News(
        sentence=_sentence(words, counts) if len(table) else
        f"{words}: the first commit; there is nothing to compare it with yet.",
        changes=found,
        counts=dict(counts),
        stale=len(table) - len(fresh),
    )  # fmt: skip


def exact_steps(series: Series, hashes: list[str]) -> list[Change]:
    """Where a figure changed by more than its floors: of an exact one nothing has to be guessed."""
    known = [point for point in series.points if point.value is not None]
    steps = []
    for one, other in pairwise(known):
        before, after = one.value or 0.0, other.value or 0.0
        change = after - before
        if abs(change) > max(series.least_change, series.noise_floor * abs(before)):
            good = {"higher": change > 0, "lower": change < 0}.get(series.direction)
            verdict = "changed" if good is None else "better" if good else "worse"
            steps.append(Change(series.key, hashes[one.commit], hashes[other.commit],
                                before, after, verdict))  # fmt: skip
    return steps


def _change(row: dict[object, object]) -> Change:
    return Change(
        key=(str(row["machine"]), str(row["environment"]), str(row["series"])),
        last_before=str(row["base"]),
        first_after=str(row["head"]),
        before=float(row["before"]),  # type: ignore[arg-type]
        after=float(row["after"]),  # type: ignore[arg-type]
        verdict=str(row["verdict"]),
    )


def _size(change: Change) -> float:
    ratio = change.ratio
    return abs(log(ratio)) if ratio is not None and ratio > 0 else float("inf")


def _when(current: pd.DataFrame, now: datetime) -> str:
    measured = current["measured"].max()
    if pd.isna(measured):
        measured = current["date"].max()
    if now - RECENT <= measured <= now:
        return "Last night"
    return f"Measured on {measured.day} {measured:%B %Y}"


def _sentence(when: str, counts: Counter[str]) -> str:
    total = sum(counts.values())
    if not total:
        return f"{when}: nothing that could be compared."
    if counts["same"] == total:
        return f"{when}: no changes in {total:,} series."
    words = [
        _plural(counts["worse"], "regression"),
        _plural(counts["better"], "improvement"),
        f"{counts['changed']:,} changed either way" if counts["changed"] else "",
        f"{counts['same']:,} unchanged",
        f"{counts['missing']:,} without a figure" if counts["missing"] else "",
    ]
    return f"{when}: {', '.join(word for word in words if word)}."


def _plural(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}" if number else f"no {word}s"
