"""What there is to act on, commit by commit: how it stands, whose it is, how to see it once more.

Everything is read off the verdicts that `harness.tracking.verdict` has made.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from dashboards.content.recent_changes import RecentChange, recent_change
from harness.tracking.by_commit import CommitNews, by_commit
from harness.tracking.triage import acknowledgement
from harness.tracking.verdict import Key, SeriesVerdict

NewsKind = Literal["new", "open", "settled", "known", "better", "changed"]
"""new, open: a regression that nobody has spoken of, seen first at the newest point of a series or
before. settled: it became worse, and with later changes it is worse no more. known: the triage file
speaks of it.
"""

NEWS_LABELS: dict[NewsKind, str] = {
    "new": "▼ NEW",
    "open": "▼ OPEN",
    "settled": "▼ no longer worse",
    "known": "▼ acknowledged",
    "better": "▲ better",
    "changed": "~ changed",
}
"""In the order in which they are shown."""


class Item(NamedTuple):
    """A commit and what it has changed, the worst first.

    ``commit``: the likeliest of ``suspects``, oldest first. ``acknowledge``: what to put into the
    triage file, "" where nothing is open. ``news``: as the tracking has it.
    """

    kind: NewsKind
    commit: str
    suspects: tuple[str, ...]
    changes: list[RecentChange]
    acknowledge: str
    news: CommitNews

    @property
    def label(self) -> str:
        """A sign and a word."""
        return NEWS_LABELS[self.kind]


def items(verdicts: Mapping[Key, SeriesVerdict], order: Mapping[str, int]) -> list[Item]:
    """The news by commit: what is to be done first, then the newest. ``order``: of the commits."""
    found = [_item(each) for each in by_commit(verdicts)]
    kinds = list(NEWS_LABELS)
    found.sort(key=lambda each: (kinds.index(each.kind), -order.get(each.commit, 0)))
    return found


def _item(news: CommitNews) -> Item:
    leader, members = news
    changes = sorted((recent_change(each, judged) for each, judged in members), key=_worst_first)
    open_ = [change for change in changes if change.is_regression]
    return Item(
        _kind(changes),
        leader.first_after,
        leader.plausible,
        changes,
        acknowledgement(leader.first_after, [(each.key[2], each.metric) for each in open_]),
        news,
    )


def _kind(changes: Sequence[RecentChange]) -> NewsKind:
    if open_ := [change for change in changes if change.is_regression]:
        return "new" if any(change.ago == 0 for change in open_) else "open"
    worse = [change for change in changes if change.verdict == "worse"]
    if worse:
        return "settled" if any(change.status == "open" for change in worse) else "known"
    return "better" if any(change.verdict == "better" for change in changes) else "changed"


def _worst_first(change: RecentChange) -> tuple[bool, bool, float]:
    return not change.is_regression, change.verdict != "worse", -change.size
