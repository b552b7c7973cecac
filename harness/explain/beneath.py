"""In which unchanged functions the change of a changed one ran."""

import msgspec

from harness.explain.attribution import summed
from harness.explain.ranking import part_of_step
from harness.explain.result import CalleeCosts, FunctionChange, FunctionPlace, Side


class Beneath(msgspec.Struct, frozen=True, kw_only=True):
    """What an unchanged function takes more, or less, as it runs for a changed one.

    Figures are per request and step.
    """

    function: str
    file: str
    line: int
    bytecodes: float
    allocations: float


def beneath(change: FunctionChange, before: Side, after: Side) -> list[Beneath]:
    """Those that take more or less, whoever has called them; the largest change first."""
    ran: dict[FunctionPlace, list[CalleeCosts]] = {}
    for each in change.beneath:
        ran.setdefault(each.function, []).append(each)
    old, new = before.costs.num_rows, after.costs.num_rows
    found = []
    for place, costs in ran.items():
        then, now = summed(each.before for each in costs), summed(each.after for each in costs)
        found.append(
            Beneath(
                function=place.name,
                file=place.file,
                line=place.line,
                bytecodes=now.bytecodes / new - then.bytecodes / old,
                allocations=now.allocations / new - then.allocations / old,
            )
        )
    part = part_of_step(before, after)
    found = [each for each in found if each.bytecodes or each.allocations]
    return sorted(found, key=lambda each: -part(each.bytecodes, each.allocations))
