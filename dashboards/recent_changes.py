"""What changed of late, in one sentence and a list of it; and what is marked in the histories."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from math import isfinite, log
from typing import NamedTuple

import pandas as pd

from dashboards.series import Key
from harness.tracking.detect.change import Change as Found
from harness.tracking.examine_history import RECENT_POINTS, Examined

RECENT = timedelta(hours=36)
"""What was measured so long ago was measured last night."""

_ORDER = ("worse", "better", "changed", "suspicious")


class Change(NamedTuple):
    """A step in a series: the last commit before it, those that may have made it and the likeliest
    of them. ``named``: what was said when it was found, empty where that is the same. ``ago``: so
    many points of the series were there since it was seen.
    """

    key: Key
    last_before: str
    first_after: str
    plausible: tuple[str, ...]
    named: tuple[str, ...]
    before: float
    after: float
    verdict: str
    ago: int

    @property
    def ratio(self) -> float | None:
        """After over before, where that is a number."""
        ratio = self.after / self.before if self.before else float("inf")
        return ratio if isfinite(ratio) else None


class RecentChanges(NamedTuple):
    """``changes``: those of the last `RECENT_POINTS` points of series that were measured at the
    newest commit of their machine and environment, the worst first. ``stale``: how many were not.
    """

    sentence: str
    changes: list[Change]
    stale: int

    @property
    def verdicts(self) -> dict[Key, str]:
        """The gravest for each series."""
        return {change.key: change.verdict for change in reversed(self.changes)}


def steps(examined: Mapping[Key, Examined]) -> dict[Key, list[Change]]:
    """Every change that is certain or suspected, by series."""
    return {
        key: [
            _change(key, found, len(series.points))
            for found in findings.changes
            if found.certainty != "machine"
        ]
        for key, (series, findings) in examined.items()
    }


def recent_changes(
    examined: Mapping[Key, Examined], figures: pd.DataFrame, now: datetime
) -> RecentChanges:
    """What there is to say of all series this morning."""
    current = figures[figures["is_current"]] if len(figures) else figures
    if current.empty:
        return RecentChanges("No commits have been measured here yet.", [], 0)
    places = current.groupby(["machine", "environment"], observed=True)
    newest = {key: str(rows.sort_values(["date", "measured"], kind="stable")["commit"].iloc[-1])
              for key, rows in places}  # fmt: skip
    fresh = {key: each for key, each in examined.items()
             if each.series.points[-1].commit == newest[key[:2]]}  # fmt: skip
    of_late = [change for changes in steps(fresh).values() for change in changes
               if change.ago < RECENT_POINTS]  # fmt: skip
    of_late.sort(key=lambda change: (_ORDER.index(change.verdict), -_size(change)))
    states = Counter(str(each.findings.state) for each in fresh.values())
    return RecentChanges(
        sentence=sentence_about(_when(current, now, of_late), states),
        changes=of_late,
        stale=len(examined) - len(fresh),
    )


def _change(key: Key, found: Found, points: int) -> Change:
    verdict = "suspicious" if found.certainty == "suspected" else found.verdict
    return Change(
        key, found.last_before, found.first_after, found.plausible,
        () if found.named == found.plausible else found.named, found.before, found.after, verdict,
        points - 1 - found.found,
    )  # fmt: skip


def _size(change: Change) -> float:
    ratio = change.ratio
    return abs(log(ratio)) if ratio is not None and ratio > 0 else float("inf")


def _when(current: pd.DataFrame, now: datetime, of_late: Iterable[Change]) -> str:
    measured = current["measured"].max()
    if pd.isna(measured):
        measured = current["date"].max()
    is_recent = now - RECENT <= measured <= now
    day = f"{measured.day} {measured:%B %Y}"
    if any(change.ago for change in of_late):
        return f"Last {RECENT_POINTS} commits" + ("" if is_recent else f", to {day}")
    return "Last night" if is_recent else f"Measured on {day}"


def sentence_about(when: str, states: Counter[str]) -> str:
    """How many series are in which of `Examined`'s states, beginning with ``when``."""
    total = sum(states.values())
    if not total or states["insufficient"] == total:
        return f"{when}: too few commits yet to tell a change from none."
    if states["ok"] == total:
        return f"{when}: no changes in {total:,} series."
    words = [
        _plural(states["regression"], "regression"),
        _plural(states["improvement"], "improvement"),
        f"{states['changed']:,} changed either way" if states["changed"] else "",
        f"{states['suspicious']:,} suspicious" if states["suspicious"] else "",
        f"{states['ok']:,} unchanged",
        f"{states['insufficient']:,} with too few points" if states["insufficient"] else "",
    ]
    return f"{when}: {', '.join(word for word in words if word)}."


def _plural(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}" if number else f"no {word}s"
