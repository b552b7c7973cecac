"""Where a cost came in: one version after another, each function's change at each."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from harness.experiment.result import ReplayedWorkload
from harness.explain.changes import function_changes
from harness.explain.pairing import Kind
from harness.explain.result import Side
from harness.machine.describe import Machine

GROWTH_SCHEMA = "gcbench.growth/1"


class StageCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage takes, per request and step."""

    bytecodes: float = 0.0
    objects: float = 0.0


class VersionCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a version takes, per request and step: in all, and by stage."""

    label: str
    bytecodes: float
    objects: float
    stages: dict[str, StageCost]


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """A function that takes more, or less, in ``version`` than in the one before it.

    Figures are per request and step. ``function``: its name there, of one that is gone the one it
    had. Those of a version add up to its difference from the one before it.
    """

    version: str
    kind: Kind
    stage: str
    function: str
    file: str
    line: int
    bytecodes: float
    objects: float


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """Everything `releases --explain` knows at its end; ``versions`` in the order given."""

    name: str
    command: str
    machine: Machine
    workload: ReplayedWorkload
    axes: dict[str, str | int]
    versions: list[VersionCost]
    arrivals: list[Arrival]
    notes: list[str]
    schema: str = GROWTH_SCHEMA


def version_cost(side: Side) -> VersionCost:
    """What a version takes; its stages add up to it."""
    rows = side.costs.num_rows
    stages: dict[str, StageCost] = {}
    for each in side.costs.functions:
        known = stages.get(each.stage, StageCost())
        stages[each.stage] = StageCost(
            bytecodes=known.bytecodes + each.bytecodes / rows,
            objects=known.objects + each.allocations / rows,
        )
    return VersionCost(
        label=side.label,
        bytecodes=sum(each.bytecodes for each in side.costs.functions) / rows,
        objects=sum(each.allocations for each in side.costs.functions) / rows,
        stages=stages,
    )


def arrivals(sides: Sequence[Side]) -> list[Arrival]:
    """All changes from each version to the next that are not nothing, in their order."""
    return [each for before, after in pairwise(sides) for each in _between(before, after)]


def _between(before: Side, after: Side) -> Iterator[Arrival]:
    then, now = before.costs.num_rows, after.costs.num_rows
    for change in function_changes(before.costs, after.costs):
        bytecodes = change.costs_after.bytecodes / now - change.costs_before.bytecodes / then
        objects = change.costs_after.allocations / now - change.costs_before.allocations / then
        if bytecodes or objects:
            where = (change.after or change.before)[0]
            yield Arrival(
                version=after.label,
                kind=change.kind,
                stage=change.stage,
                function=" + ".join(each.name for each in change.after or change.before),
                file=where.file,
                line=where.line,
                bytecodes=bytecodes,
                objects=objects,
            )
