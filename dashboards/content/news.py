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
"""new, open: a regression that nobody has spoken of, seen first at the newest point of a series
that was measured of late, or before. settled: it became worse, and with later changes it is worse
no more. known: the triage file speaks of it.
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

    @property
    def is_to_be_done(self) -> bool:
        """Whether somebody has to act on it."""
        return self.kind in ("new", "open")

    @property
    def cost(self) -> float:
        """The sum over its series of how large the changes that count are."""
        return sum(
            each.size for each in self.changes if each.is_regression or not self.is_to_be_done
        )


def items(
    verdicts: Mapping[Key, SeriesVerdict], order: Mapping[str, int], *, is_old: bool
) -> list[Item]:
    """The news by commit: what is to be done first, and of that what costs most, then the newest.

    ``order``: of the commits. ``is_old``: all figures are, so that nothing is new.
    """
    found = [_item(each, is_old) for each in by_commit(verdicts)]
    kinds = list(NEWS_LABELS)
    found.sort(
        key=lambda each: (
            0 if each.is_to_be_done else kinds.index(each.kind),
            -each.cost,
            -order.get(each.commit, 0),
        )
    )
    return found


def _item(news: CommitNews, is_old: bool) -> Item:
    leader, members = news
    changes = sorted((recent_change(each, judged) for each, judged in members), key=_worst_first)
    open_ = [change for change in changes if change.is_regression]
    return Item(
        _kind(changes, is_old),
        leader.first_after,
        leader.plausible,
        changes,
        acknowledgement(leader.first_after, [(each.key[2], each.metric) for each in open_]),
        news,
    )


def _kind(changes: Sequence[RecentChange], is_old: bool) -> NewsKind:
    if open_ := [change for change in changes if change.is_regression]:
        is_new = not is_old and any(change.ago == 0 for change in open_)
        return "new" if is_new else "open"
    worse = [change for change in changes if change.verdict == "worse"]
    if worse:
        return "settled" if any(change.status == "open" for change in worse) else "known"
    return "better" if any(change.verdict == "better" for change in changes) else "changed"


def _worst_first(change: RecentChange) -> tuple[bool, bool, float]:
    return not change.is_regression, change.verdict != "worse", -change.size
