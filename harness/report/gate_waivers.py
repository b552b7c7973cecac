"""What a gate's waivers have accepted, and what would accept the rest, in words."""

from math import ceil

from harness import format as fmt
from harness.metrics import METRICS
from harness.tracking.gate.exact_words import counted_as, signed_amount
from harness.tracking.gate.result import ExactChange, GateResult, UsedWaiver
from harness.tracking.gate.waivers import OUTPUTS, TRAILER, Waiver


def accepted_words(result: GateResult) -> list[str]:
    """Of each waiver that something needed how much of it is used, and where it was said."""
    return [_used(result, each) for each in result.waivers if each.cells]


def unused_words(result: GateResult) -> list[str]:
    """Waivers that nothing needed; none where something was not measured, which may need them."""
    if result.missing or not result.is_complete:
        return []
    return [_unused(each.waiver) for each in result.waivers if not each.cells]


def _used(result: GateResult, each: UsedWaiver) -> str:
    waiver = each.waiver
    of = f", of {'; '.join(each.cells)}" if len(each.cells) < len(result.cells) else ""
    said = f"{_place(waiver)}{of}"
    if waiver.metric == OUTPUTS:
        others = (cell.other_outputs for cell in result.cells if cell.id in each.cells)
        return f"other {next(others)}, by {said}"
    metric = METRICS[waiver.metric]
    loss = -each.used if metric.direction == "higher" else each.used
    used = f"{signed_amount(loss, metric.unit)} of {_amount(each.most, metric.unit)}"
    return f"{used} {counted_as(metric.name)}, by {said}"


def _unused(waiver: Waiver) -> str:
    of = f" of {waiver.cell}" if waiver.cell else ""
    if waiver.metric == OUTPUTS:
        return f"other outputs{of}, by {_place(waiver)}"
    unit = METRICS[waiver.metric].unit
    most = f"{100 * waiver.most:g} %" if waiver.is_share else _amount(waiver.most, unit)
    return f"{most} {counted_as(waiver.metric)}{of}, by {_place(waiver)}"


def _place(waiver: Waiver) -> str:
    return f'{waiver.place} ("{fmt.printable(waiver.reason)}")'


def _amount(size: float, unit: str) -> str:
    return signed_amount(size, unit)[1:]


def trailer_lines(result: GateResult) -> list[str]:
    """Of a trade, what in a commit's message would accept what is left of its losses."""
    if result.verdict != "trade":
        return []
    losses: dict[str, ExactChange] = {}
    for cell in result.cells:
        for change in cell.exact:
            if change.verdict == "worse":
                known = losses.get(change.metric, change)
                losses[change.metric] = max(known, change, key=_left)
    return [f"{TRAILER}: {name} {_enough(change)}" for name, change in losses.items()]


def _left(change: ExactChange) -> float:
    return change.loss - change.accepts


def _enough(change: ExactChange) -> str:
    sign = "-" if change.direction == "higher" else "+"
    if change.unit == "B":
        return f"{sign}{ceil(_left(change))} B"
    return f"{sign}{ceil(100 * round(_left(change), 6)) / 100:.12g}"
