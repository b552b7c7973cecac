"""The one judgement of a series, which pages, alerts, summaries and exit codes all read."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Literal, NamedTuple

from harness.tracking.detect.change import Change, Findings, verdict
from harness.tracking.detect.search import RECENT_NIGHTS
from harness.tracking.detect.series import Series
from harness.tracking.triage import Judged, Triage, apply

Key = tuple[str, str, str]
"""Machine, environment, series."""

Word = Literal[
    "worse",
    "better",
    "changed",
    "suspicious",
    "inconclusive",
    "same",
    "no_change_shown",
    "insufficient",
    "reset",
    "missing",
]
"""same: an interval shows it within the metric's floors. no_change_shown: no step was found.
inconclusive: an interval is too wide, of a level or of commits. reset: a level began by decree."""

RECENT_POINTS = RECENT_NIGHTS
"""A change is news for so many points with a value, so that no weekend hides one."""


class Between(NamedTuple):
    """``suspects``: the commits one of which made the change, where that is not known."""

    word: Word
    suspects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SeriesVerdict:
    """What is to be said of a series today.

    ``word``: how it stands against the level before its ``news``, the changes that became certain
    in the last `RECENT_POINTS` points with a value and after the last reset. ``suspicion``: a jump
    that is not certain. ``is_stale``: not measured at the newest commit of its machine and
    environment. ``places``: its commits with a value, oldest first, and the index of each one's
    last point.
    """

    key: Key
    series: Series
    findings: Findings
    word: Word
    news: tuple[Judged, ...]
    suspicion: Judged | None
    is_stale: bool
    places: Mapping[str, int]

    def is_regression(self, judged: Judged) -> bool:
        """Whether a change of its news has made it worse, and nobody has said a word of it."""
        is_open = judged.status == "open" and judged.change.verdict == "worse"
        return is_open and judged.change.is_alert and self.word == "worse"

    @property
    def has_regression(self) -> bool:
        """Whether somebody has to look at it."""
        return any(map(self.is_regression, self.news))

    @property
    def is_unsettled(self) -> bool:
        """Whether nobody can tell if what has made it worse is made good."""
        made_worse = (each for each in self.news if each.change.verdict == "worse")
        return self.word == "inconclusive" and any(each.status == "open" for each in made_worse)

    def ago(self, change: Change) -> int:
        """How many points with a value there were since a change was seen."""
        return _ago(self.series, change)

    def between(self, base: str, head: str) -> Between:
        """The verdict on ``head`` against ``base``, two commits in either order."""
        if base not in self.places or head not in self.places:
            return Between("missing")
        return self._between(self.places[base], self.places[head])

    def before(self, commit: str) -> str | None:
        """The commit with a value before one that has one, None for the first and for others."""
        return next((one for one, other in pairwise(self.places) if other == commit), None)

    def levels(self) -> tuple[dict[str, int], list[list[Word]]]:
        """The level of each commit, and the word between a commit of one level and one of another.

        Commits that may have made a change are levels of their own.
        """
        ends = [end for change in self._steps() for end in self._range(change)]
        cuts = sorted({*ends, *self.findings.resets})
        of = {commit: bisect_right(cuts, place) for commit, place in self.places.items()}
        inside: list[list[int]] = [[] for _ in range(len(cuts) + 1)]
        for commit, level in of.items():
            inside[level].append(self.places[commit])
        table: list[list[Word]] = [
            [
                self._between(one[0], other[-1]).word if one and other else "missing"
                for other in inside
            ]
            for one in inside
        ]
        return of, table

    def _steps(self) -> list[Change]:
        certain = [change for change in self.findings.changes if change.is_alert]
        return [*certain, *([self.suspicion.change] if self.suspicion else [])]

    def _range(self, change: Change) -> tuple[int, int]:
        """Between which points it lies."""
        places = [self.places[commit] for commit in change.plausible]
        return min(places), max(places)

    def _between(self, one: int, other: int) -> Between:
        if not self.findings.is_enough:
            return Between("insufficient")
        if one > other:
            there = self._between(other, one)
            return there._replace(word=_TURNED.get(there.word, there.word))
        if any(one < reset <= other for reset in self.findings.resets):
            return Between("reset")
        whole, part = list[Change](), list[Change]()
        for change in self._steps():
            low, high = self._range(change)
            if one < low and high <= other:
                whole.append(change)
            elif one < high and low <= other and one != other:
                part.append(change)
        if part:
            return Between("inconclusive" if part[0].is_alert else "suspicious", part[0].plausible)
        if certain := [change for change in whole if change.is_alert]:
            return Between(_net(self.series, certain))
        return Between("suspicious" if whole else "no_change_shown")


def word_of(change: Change) -> Word:
    """What is said of one change alone."""
    return "suspicious" if change.certainty == "suspected" else change.verdict


_TURNED: dict[Word, Word] = {"worse": "better", "better": "worse"}


def judge(
    series: Series,
    findings: Findings,
    triage: Triage,
    today: date,
    *,
    key: Key = ("", "", ""),
    is_stale: bool = False,
) -> SeriesVerdict:
    """One series, of which ``findings`` are known."""
    reset = max(findings.resets, default=0)
    news = [
        change
        for change in findings.changes
        if change.is_alert and change.place >= reset and _ago(series, change) < RECENT_POINTS
    ]
    suspected = [change for change in findings.changes if change.certainty == "suspected"]
    if not findings.is_enough:
        word: Word = "insufficient"
    elif news:
        word = _net(series, news)
    else:
        word = "suspicious" if suspected else "no_change_shown"
    last = {p.commit: n for n, p in enumerate(series.points) if math.isfinite(p.value)}
    places = dict(sorted(last.items(), key=lambda each: each[1]))
    return SeriesVerdict(
        key,
        series,
        findings,
        word,
        tuple(apply(news, triage, today)),
        next(iter(apply(suspected, triage, today)), None),
        is_stale,
        places,
    )


def _ago(series: Series, change: Change) -> int:
    return sum(math.isfinite(point.value) for point in series.points[change.found + 1 :])


def _net(series: Series, changes: Sequence[Change]) -> Word:
    """What several changes come to, the first's level before against the last's after."""
    if len({change.after > change.before for change in changes}) == 1:
        return changes[0].verdict
    before, after = changes[0].before, changes[-1].after
    reach = math.sqrt(
        sum(
            (math.log(c.ci95[1] / c.ci95[0]) / 2) ** 2 if c.ci95[0] > 0 else math.inf
            for c in changes
        )
    )
    if series.kind == "exact":
        reach = 0.0
    low, high = (after * math.exp(by) if math.isfinite(by) else by for by in (-reach, reach))
    if not (series.differs(before, low) or series.differs(before, high)):
        return "same"
    if series.differs(before, after) and not low <= before <= high:
        return verdict(series, before, after)
    return "inconclusive"
