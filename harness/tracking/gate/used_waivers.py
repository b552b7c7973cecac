"""How much of each waiver a gate's cells have used."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.tracking.gate.result import ExactChange, GateCell, UsedWaiver
from harness.tracking.gate.waivers import OUTPUTS, Waiver


def used_waivers(waivers: Sequence[Waiver], cells: Sequence[GateCell]) -> list[UsedWaiver]:
    """Each waiver in its order; several of one metric are used up one after another."""
    return [_used(waiver, waivers[:place], cells) for place, waiver in enumerate(waivers)]


class _Use(NamedTuple):
    used: float
    most: float
    cell: str


def _used(waiver: Waiver, earlier: Sequence[Waiver], cells: Sequence[GateCell]) -> UsedWaiver:
    uses = [use for cell in cells for use in _uses(waiver, earlier, cell)]
    largest = max(uses, default=_Use(0.0, 0.0, ""))
    return UsedWaiver(
        waiver=waiver, cells=[use.cell for use in uses], used=largest.used, most=largest.most
    )


def _uses(waiver: Waiver, earlier: Sequence[Waiver], cell: GateCell) -> Iterator[_Use]:
    if cell.other_outputs and waiver.covers(OUTPUTS, cell.id):
        yield _Use(0.0, 0.0, cell.id)
    for change in cell.exact:
        if change.accepts and waiver.covers(change.metric, cell.id):
            most = waiver.amount(change.before)
            used = min(most, change.loss - _accepted(earlier, change, cell.id))
            if used > 0:
                yield _Use(used, most, cell.id)


def _accepted(waivers: Sequence[Waiver], change: ExactChange, cell: str) -> float:
    return sum(
        waiver.amount(change.before) for waiver in waivers if waiver.covers(change.metric, cell)
    )
