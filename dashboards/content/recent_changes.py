"""What changed of late, in one sentence; and what is marked in the histories."""

from collections import Counter
from collections.abc import Collection, Mapping
from math import isfinite
from typing import NamedTuple

import pandas as pd

from harness.report.series_words import LABELS, change_size, counts, counts_sentence, triaged
from harness.tracking.detect.change import Change as Found
from harness.tracking.triage import Judged, Status
from harness.tracking.verdict import Key, SeriesVerdict, Word, word_of

_ORDER = list(LABELS)
_NEWS = ("worse", "better", "changed")


class RecentChange(NamedTuple):
    """A step in a series: the last commit before it, those that may have made it and the likeliest
    of them. ``named``: what was said when it was found, empty where that is the same. ``ratio`` and
    its interval: None where that is no number, or exact. ``ago``: so many points with a value of
    the series were there since it was seen. ``stands``: the verdict on the series today.
    ``reason``: the triage file's, or which entry of it has run out.
    """

    key: Key
    metric: str
    last_before: str
    first_after: str
    plausible: tuple[str, ...]
    named: tuple[str, ...]
    before: float
    after: float
    ci95: tuple[float, float] | None
    verdict: Word
    ago: int
    stands: Word
    status: Status = "open"
    reason: str = ""
    is_regression: bool = False

    @property
    def ratio(self) -> float | None:
        """After over before, where that is a number."""
        ratio = self.after / self.before if self.before else float("inf")
        return ratio if isfinite(ratio) else None

    @property
    def share(self) -> float | None:
        """The change as a share of what it was."""
        return None if self.ratio is None else self.ratio - 1

    @property
    def size(self) -> float:
        """How large it is, whichever way."""
        return change_size(self.ratio)


class RecentChanges(NamedTuple):
    """``changes``: the news and suspicions of all series, the worst first.

    ``sentence``: how many series stand how. For a page that is the ``headline``, of those that
    changed, and the ``rest``.
    """

    sentence: str
    changes: list[RecentChange]
    headline: str
    rest: str = ""

    @property
    def suspicions(self) -> list[RecentChange]:
        """Jumps that are not certain."""
        return [change for change in self.changes if change.verdict == "suspicious"]


def recent_steps(verdicts: Mapping[Key, SeriesVerdict]) -> dict[Key, list[RecentChange]]:
    """Every change that is certain or suspected, by series."""
    return {
        key: [
            _change(each, found) for found in each.findings.changes if found.certainty != "machine"
        ]
        for key, each in verdicts.items()
    }


def marks_by_commit(verdicts: Mapping[Key, SeriesVerdict]) -> dict[str, list[tuple[Word, int]]]:
    """At the likeliest commit of each change: in how many series it stands, by what was said.

    A suspicion marks none: it is measured again before anybody is troubled with it.
    """
    found: dict[str, Counter[Word]] = {}
    for changes in recent_steps(verdicts).values():
        for change in changes:
            if change.verdict in _NEWS:
                found.setdefault(change.first_after, Counter())[change.verdict] += 1
    return {
        commit: sorted(words.items(), key=lambda pair: _ORDER.index(pair[0]))
        for commit, words in found.items()
    }


def recent_changes(verdicts: Mapping[Key, SeriesVerdict], figures: pd.DataFrame) -> RecentChanges:
    """What there is to say of all series."""
    current = figures[figures["is_current"]] if len(figures) else figures
    if current.empty:
        nothing = "No commits have been measured here yet."
        return RecentChanges(nothing, [], nothing)
    of_late = [
        recent_change(each, judged)
        for each in verdicts.values()
        for judged in (*each.news, *([each.suspicion] if each.suspicion else []))
    ]
    of_late.sort(key=lambda change: (_ORDER.index(change.verdict), -change.size))
    when = _when(current, {change.first_after for change in of_late if change.verdict in _NEWS})
    sentence, headline, rest = _said(when, verdicts.values())
    return RecentChanges(sentence, of_late, headline, rest)


def recent_change(of: SeriesVerdict, judged: Judged) -> RecentChange:
    """One of its news or its suspicion, with what is said of it."""
    return _change(of, judged.change)._replace(
        status=judged.status,
        reason=judged.reason or judged.note,
        is_regression=of.is_regression(judged),
    )


def _change(of: SeriesVerdict, found: Found) -> RecentChange:
    named = () if found.named == found.plausible else found.named
    has_interval = of.series.kind == "timing" and all(map(isfinite, found.ci95))
    return RecentChange(
        of.key,
        found.metric,
        found.last_before,
        found.first_after,
        found.plausible,
        named,
        found.before,
        found.after,
        found.ci95 if has_interval else None,
        word_of(found),
        of.ago(found),
        of.word,
    )


def _when(current: pd.DataFrame, blamed: Collection[str]) -> str:
    """By dates, since a page may be read a week later: of the commits from the first one blamed."""
    newest, measured = current["date"].max(), current["measured"].max()
    first = current.loc[current["commit"].isin(blamed), "date"].min()
    if pd.isna(first) or first == newest:
        return f"Measured on {_day(newest if pd.isna(measured) else measured)}"
    is_near = f"{first:%Y %m}" == f"{newest:%Y %m}"
    begun = "" if first.date() == newest.date() else f"{first.day if is_near else _day(first)} to "
    return f"Commits of {begun}{_day(newest)}"


def _day(when: pd.Timestamp) -> str:
    return f"{when.day} {when:%B %Y}"


def _said(when: str, verdicts: Collection[SeriesVerdict]) -> tuple[str, str, str]:
    """How many series stand how, beginning with ``when``; what of it is news, and the rest."""
    number, known = counts(verdicts), triaged(verdicts)
    if not number or set(number) == {"insufficient"}:
        nothing = f"{when}: too few commits yet to tell a change from none."
        return nothing, nothing, ""
    news = {word: many for word, many in number.items() if word in _NEWS}
    rest = {word: many for word, many in number.items() if word not in _NEWS}
    changed = counts_sentence(news, known) or "nothing became worse or better"
    others = f"{'The other ' if news else ''}{sum(rest.values()):,} series"
    return (
        f"{when}: {counts_sentence(number, known)}.",
        f"{when}: {changed}.",
        f"{others}: {counts_sentence(rest, 0)}." if rest else "",
    )
