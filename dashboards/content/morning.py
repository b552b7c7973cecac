"""What the overview says first, and which of its rows stand together."""

from collections.abc import Iterable, Mapping, Sequence

from dashboards.content.news import Item
from dashboards.content.recent_changes import RecentChange, RecentChanges
from dashboards.content.series import ChartSeries
from dashboards.content.standing import Standing, all_old
from harness.report.what_to_do import NOTHING_TO_DO
from harness.tracking.verdict import Key, Word


def advice(
    items: Sequence[Item], latest: RecentChanges, standings: Sequence[Standing]
) -> tuple[str, RecentChange | None]:
    """What to do this morning, in a sentence, and the change to look at first."""
    worst = next((item.changes[0] for item in items if item.changes[0].is_regression), None)
    if all_old(standings):
        age = standings[0].age
        return f"Measure again before you act: the newest figures are {age} old.", worst
    if worst or not standings:
        return "", worst
    return NOTHING_TO_DO + " Suspicions are measured again." * bool(latest.suspicions), None


def variants(
    changes: Iterable[RecentChange], by_key: Mapping[Key, ChartSeries]
) -> list[list[RecentChange]]:
    """The changes of each benchmark with the same verdict, where its first one stood."""
    found: dict[tuple[str, Word], list[RecentChange]] = {}
    for change in changes:
        found.setdefault((by_key[change.key].page, change.verdict), []).append(change)
    return list(found.values())


def common_unit(changes: Iterable[RecentChange], by_key: Mapping[Key, ChartSeries]) -> str:
    """The unit that a heading says for all of them; "" where they differ."""
    units = {by_key[change.key].plain_unit for change in changes}
    return units.pop() if len(units) == 1 else ""
