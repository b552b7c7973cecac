"""What `gcbench sites` answers: which lines make the collector run."""

from typing import NamedTuple

import msgspec

from harness.axes import Cell
from harness.collector.sites import AllocationSite, CollectionSites
from harness.experiment.outcomes import Trials
from harness.machine.describe import Machine
from harness.result.result import ReplayedWorkload
from harness.trial.spec import Mode

BY_SITE: Mode = "sites"
"""The mode in which a trial looks at what collections find."""

SITES_SCHEMA = "gcbench.sites/1"


Place = tuple[str, int]
"""File and line."""


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """What a change of a line's objects to another type would touch, found by names in the code.

    ``made``: the line, and all other calls of the same class. ``read``: lines that read the
    objects, under the names by which they are handed on. ``hazards``: those of them that do with a
    list, tuple, dictionary or set what an array does not bear or answers otherwise, by what.
    """

    file: str
    line: int
    made: list[Place]
    read: list[Place]
    hazards: dict[str, list[Place]]

    @property
    def num_files(self) -> int:
        """Files that would change."""
        return len({file for file, _ in (*self.made, *self.read)})


class SitesResult(msgspec.Struct, frozen=True, kw_only=True):
    """Everything `sites` knows at its end; ``roots`` are the folders below which files lie.

    ``prices``: of the lines with the largest shares.
    """

    name: str
    command: str
    machine: Machine
    workload: ReplayedWorkload
    axes: dict[str, str | int]
    num_steps: int
    roots: list[str]
    found: CollectionSites
    prices: list[Price] = []
    notes: list[str] = []
    schema: str = SITES_SCHEMA


class Seen(NamedTuple):
    """What a trial of so many steps found."""

    found: CollectionSites
    num_steps: int


def read_sites(trials: Trials, cell: Cell) -> Seen | str:
    """What was found of a cell, or why no line can be named, in one sentence."""
    trial = trials.counted_in(BY_SITE, cell)
    if trial is None or trial.sites is None:
        return "; ".join(each.reason for each in trials.failures) or "the trial gave no result"
    num_steps = round(trial.metrics["num_steps"] or 0)
    if not sum(trial.sites.collections):
        return (
            f"the collector did not run once in {num_steps} steps under --gc {cell.gc}; choose "
            "another policy, a larger batch or longer outputs"
        )
    return Seen(trial.sites, num_steps)


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
    path: list[Place] = []


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
