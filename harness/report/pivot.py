"""What a comparison found, small: two axes across each other, a change and a verdict in each cell.

Which axis goes across follows from the cells alone: whichever leaves the fewest gaps, the last one
of those.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from harness import format as fmt
from harness.experiment.reference import references
from harness.experiment.result import CellResult, Comparison, ExperimentResult
from harness.metrics import METRICS
from harness.render.table import PlainTable, Row
from harness.render.verdict_words import REFERENCE, REFERENCE_MEANS, SIGNS, VERDICTS
from harness.report.header import varying_axes
from harness.report.summary import by_group, direction_words, median, metric_words, on_device

MOST_ACROSS = 6
"""Values of an axis that can stand side by side."""

_NO_RATIO = "no verdict"


class Pivot(NamedTuple):
    """A group's cells by row and by ``columns``, the values of one axis.

    Rows are named by the other axes that vary. No columns: cells are better listed.
    """

    metric: str
    baseline: CellResult
    columns: list[str]
    rows: dict[str, dict[str, CellResult]]


def pivots(result: ExperimentResult) -> list[tuple[Pivot, list[Comparison]]]:
    """A pivot for each group with a baseline, and the group's comparisons."""
    found = []
    for group in by_group(result):
        ids = {cell.id for cell in group}
        ours = [each for each in result.comparisons if each.candidate in ids]
        if not ours:
            continue
        baseline = next(cell for cell in group if cell.id == ours[0].baseline)
        found.append((_pivot(group, baseline, ours[0].metric, result), ours))
    return found


def pivot_tables(result: ExperimentResult) -> list[PlainTable]:
    """A table a group; of changes and their signs where two axes vary, of intervals where one."""
    return [
        _crossed(pivot, ours, result) if pivot.columns else _listed(pivot, ours, result)
        for pivot, ours in pivots(result)
    ]


def ratio_words(comparison: Comparison, *, is_reference: bool = False) -> str:
    """A sign and a change: "▲ +47.9 %"."""
    change = fmt.percent(comparison.ratio - 1, signed=True)
    return f"{REFERENCE[0] if is_reference else SIGNS[comparison.verdict]} {change}"


def level_words(cell: CellResult, metric: str) -> str:
    """A cell's median with its unit, "" where it has none."""
    unit = METRICS[metric].unit if metric in METRICS else ""
    value = median(cell, metric)
    return "" if value is None else fmt.with_unit(value, unit)


def _pivot(
    group: Sequence[CellResult], baseline: CellResult, metric: str, result: ExperimentResult
) -> Pivot:
    axes = [
        axis for axis in varying_axes(result) if len({cell.axes.get(axis) for cell in group}) > 1
    ]
    across = _across(group, axes)
    down = [axis for axis in axes if axis != across]
    columns = list(dict.fromkeys(_value(cell, across) for cell in group)) if across else []
    rows: dict[str, dict[str, CellResult]] = {}
    for cell in group if across else ():
        name = " · ".join(_value(cell, axis) for axis in down)
        rows.setdefault(name, {})[_value(cell, across)] = cell
    return Pivot(metric, baseline, columns, rows)


def _across(group: Sequence[CellResult], axes: Sequence[str]) -> str:
    """The axis of the columns; "" where cells are better listed."""
    gaps = {}
    for axis in axes if len(axes) > 1 else ():
        columns = {_value(cell, axis) for cell in group}
        rows = {tuple(_value(cell, other) for other in axes if other != axis) for cell in group}
        if len(columns) <= MOST_ACROSS and len(rows) < len(group):
            gaps[axis] = len(rows) * len(columns) - len(group)
    return min(reversed(gaps), key=lambda axis: gaps[axis]) if gaps else ""


def _value(cell: CellResult, axis: str) -> str:
    value = cell.axes.get(axis, "")
    return fmt.count(value) if isinstance(value, int) else value or fmt.MISSING


def _crossed(
    pivot: Pivot, comparisons: Sequence[Comparison], result: ExperimentResult
) -> PlainTable:
    by_id = {each.candidate: each for each in comparisons}
    off = references(result)

    def shown(cell: CellResult | None) -> str:
        if cell is None:
            return fmt.MISSING
        if cell.id == pivot.baseline.id:
            return "baseline"
        if cell.id not in by_id:
            return _NO_RATIO
        return ratio_words(by_id[cell.id], is_reference=cell.id in off)

    rows: list[Row] = [
        (name, *(shown(cells.get(column)) for column in pivot.columns))
        for name, cells in pivot.rows.items()
    ]
    return PlainTable(
        _title(pivot, result), ("", *pivot.columns), [rows], _caption(pivot, comparisons, result)
    )


def _listed(
    pivot: Pivot, comparisons: Sequence[Comparison], result: ExperimentResult
) -> PlainTable:
    off = references(result)
    rows: list[Row] = [
        (
            each.candidate,
            fmt.percent(each.ratio - 1, signed=True),
            fmt.interval(each.ci95),
            REFERENCE if each.candidate in off else VERDICTS[each.verdict],
        )
        for each in comparisons
    ]
    caption = _caption(pivot, comparisons, result)
    return PlainTable(_title(pivot, result), ("", "change", "95 % interval", ""), [rows], caption)


def _title(pivot: Pivot, result: ExperimentResult) -> str:
    level = level_words(pivot.baseline, pivot.metric)
    baseline = f"{pivot.baseline.id} ({level})" if level else pivot.baseline.id
    device = on_device([pivot.baseline])
    return f"{fmt.capitalised(metric_words(pivot.metric))} against {baseline}{device}"


def _caption(pivot: Pivot, comparisons: Sequence[Comparison], result: ExperimentResult) -> str:
    off = references(result)
    found = Counter(each.verdict for each in comparisons if each.candidate not in off)
    num_off = sum(each.candidate in off for each in comparisons)
    within = f" within ±{fmt.rough_percent(result.tolerance)}"
    signs = "  ".join(
        f"{SIGNS[verdict]} {found[verdict]} {verdict}{within * (verdict == 'same')}"
        for verdict in VERDICTS
        if verdict in found
    )
    if num_off:
        plural = "s" if num_off > 1 else ""
        of = f"{REFERENCE[0]} {num_off} reference{plural} ({REFERENCE_MEANS})"
        signs = "  ".join(filter(None, (signs, of)))
    return f"{signs}; {direction_words(pivot.metric)}"
