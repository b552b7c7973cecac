"""The lines whose objects collections find, each with all types that it makes."""

import msgspec

from harness.collector.sites import AllocationSite, CollectionSites
from harness.explain.result import SourcePlace


class LineOfSites(msgspec.Struct, frozen=True, kw_only=True):
    """A line with all types of objects that it makes, the most frequent first.

    Figures are sums over its `AllocationSite`; ``share_error`` is no smaller than the sum's own.
    ``path``: the commonest call path, the outermost call first.
    """

    file: str
    line: int
    types: list[str]
    share: float
    share_error: float
    pause_share: float
    promoted: int
    retained: int
    path: list[SourcePlace] = []


def by_line(found: CollectionSites) -> list[LineOfSites]:
    """The line with the largest share first."""
    grouped: dict[tuple[str, int], list[AllocationSite]] = {}
    for each in found.sites:
        grouped.setdefault((each.file, each.line), []).append(each)
    lines = [
        LineOfSites(
            file=file,
            line=line,
            types=[each.type for each in sites],
            share=sum(each.share for each in sites),
            share_error=sum(each.share_error for each in sites),
            pause_share=sum(each.pause_share for each in sites),
            promoted=sum(each.promoted for each in sites),
            retained=sum(each.retained for each in sites),
            path=next((each.path for each in sites if each.path), []),
        )
        for (file, line), sites in grouped.items()
    ]
    return sorted(lines, key=lambda each: (-each.share, each.file, each.line))
