"""The table of an experiment's file: part below part, with what others have published."""

from collections.abc import Sequence

from harness import format as fmt
from harness.experiment.experiment_file import Column, PartResult, PartsResult
from harness.experiment.reference import references
from harness.experiment.result import CellResult, Comparison, ExperimentResult
from harness.metrics import METRICS
from harness.render.table import PlainTable, Row
from harness.render.verdict_words import REFERENCE, SIGNS
from harness.report.summary import median, metric_words, on_device

_SCALE = {"s": 1.0, "ms": 1e3, "µs": 1e6}


def parts_table(result: PartsResult) -> PlainTable:
    """A group of rows a part: its title, its cells, what others have published."""
    columns = result.columns or _what_decides(result)
    units = (_heading(column) for column in columns)
    groups = [_rows(columns, part) for part in result.parts]
    return PlainTable(result.question, ("", *units), groups, result.note)


def _what_decides(result: PartsResult) -> list[Column]:
    """Each metric that decides a part, and its change."""
    metrics = dict.fromkeys(name for part in result.parts for name in part.result.decide)
    return [
        column
        for name in metrics
        for column in (
            Column(title=metric_words(name), metric=name),
            Column(title="change", metric=name, shows="change"),
        )
    ]


def _heading(column: Column) -> str:
    is_time = METRICS[column.metric].unit == "s" and column.shows != "change"
    return f"{column.title}\n{column.unit}" if is_time else column.title


def _rows(columns: Sequence[Column], part: PartResult) -> list[Row]:
    cells, result = part.result.cells, part.result
    nothing = ("",) * len(columns)
    modelled = " (modelled)" if on_device(cells) else ""
    title: Row = (part.title + modelled, *nothing)
    own = [
        (f"  {cell.id}", *(_figure(column, cell, result) for column in columns)) for cell in cells
    ]
    others = [
        (f"  {each.source}", *(each.figures.get(column.title, "") for column in columns))
        for each in part.published
    ]
    return [title, *own, *others]


def _figure(column: Column, cell: CellResult, result: ExperimentResult) -> str:
    if column.shows == "value":
        return _with_unit(column, median(cell, column.metric))
    compared = next((each for each in result.comparisons if each.candidate == cell.id), None)
    if compared is None:  # a baseline, or too few rounds
        return fmt.MISSING
    if column.shows == "change":
        if compared.metric != column.metric:
            return fmt.MISSING
        return _change(compared, is_reference=cell.id in references(result))
    baseline = next(each for each in result.cells if each.id == compared.baseline)
    value = median(baseline, column.metric)
    return fmt.MISSING if value is None else _with_unit(column, -value)


def _change(comparison: Comparison, *, is_reference: bool) -> str:
    low, high = comparison.ci95
    reach = fmt.percent((high - low) / 2).removesuffix(" %")
    sign = REFERENCE[0] if is_reference else SIGNS[comparison.verdict]
    return f"{sign} {fmt.percent(comparison.ratio - 1, signed=True)} ±{reach}"


def _with_unit(column: Column, value: float | None) -> str:
    unit = METRICS[column.metric].unit
    if unit == "s":
        return fmt.number(None if value is None else value * _SCALE[column.unit])
    if unit.startswith("share"):
        return fmt.percent(value, signed=column.shows == "baseline")
    return fmt.number(value)
