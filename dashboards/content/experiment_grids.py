"""An experiment's figures as grids, one a metric, those that are asked for most first."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from dashboards.content.grid import BETTER, COLUMN, GridCell, GridTable, against, layout
from dashboards.content.series import ChartSeries
from dashboards.pictures.intervals import judged_comparisons
from harness import format as fmt
from harness.experiment.reference import references
from harness.experiment.result import CellResult, Comparison, ExperimentResult
from harness.metrics import METRICS
from harness.report.header import varying_axes

ALWAYS = ("representation", "delivery")
"""Axes that a grid names, whether they vary or not."""

_FIRST = (
    "request_throughput",
    "host_time_per_request_step",
    "gc_pause_share",
    "gc_pause_max",
    "gc_collections_gen0",
    "gc_collections_gen1",
    "gc_collections_gen2",
    "gc_effect",
    "tracked_peak_per_step",
    "tracked_survivors_per_step",
    "tpot_median",
)

_Axes = tuple[tuple[str, str], ...]


def grids_of(result: ExperimentResult) -> dict[str, GridTable]:
    """By metric: that which decides first."""
    varying = [axis for axis in varying_axes(result) if axis not in ("copy",)]
    axes = list(dict.fromkeys([*(axis for axis in varying if axis != COLUMN), *ALWAYS, COLUMN]))
    if len({cell.axes.get("release") for cell in result.cells}) > 1:
        axes = [axis for axis in axes if axis in varying or axis == COLUMN]
    metrics = dict.fromkeys(name for cell in result.cells for name in cell.metrics)
    by_id = {cell.id: cell for cell in result.cells}
    grids = {}
    for metric in metrics:
        values = [
            ({axis: _shown(cell, axis) for axis in axes}, samples.value)
            for cell in result.cells
            if (samples := cell.metrics.get(metric)) and samples.value is not None
        ]
        if values:
            off = references(result)
            first = next(c.metrics[metric] for c in result.cells if metric in c.metrics)
            judged = {
                _axes_key(by_id[each.candidate], axes): each
                for each in judged_comparisons(result)
                if each.metric == metric and each.candidate in by_id.keys() - off
            }
            grids[metric] = grid_of(values, first.unit, first.direction, judged)
    return ordered(grids, result.decide)


def _axes_key(cell: CellResult, axes: Iterable[str]) -> _Axes:
    return tuple((axis, _shown(cell, axis)) for axis in axes)


def _shown(cell: CellResult, axis: str) -> str:
    return str(cell.axes.get(axis, "")) or "–"


def grid_of(
    values: list[tuple[dict[str, str], float]],
    unit: str,
    direction: str,
    judged: Mapping[_Axes, Comparison] = {},
) -> GridTable:
    """Against the first of the values; where a cell was judged, its change is the one that was."""
    baseline_axes, baseline = values[0]
    cells = []
    for axes, value in values:
        words, shade = against(value, baseline, direction)
        if axes == baseline_axes:
            words, shade = "baseline", 0
        text, verdict = fmt.with_unit(value, unit).strip(), ""
        if found := judged.get(tuple(axes.items())):
            words, shade = against(found.ratio, 1.0, direction)
            verdict = found.verdict
        cells.append((axes, GridCell(text, words, shade, verdict)))
    return layout(cells, BETTER.get(direction, ""))


def ordered(grids: dict[str, GridTable], decide: Sequence[str] = ()) -> dict[str, GridTable]:
    """Those of ``decide`` first, then those that are asked for most."""
    first = [name for name in (*decide, *_FIRST) if name in grids]
    return {name: grids[name] for name in dict.fromkeys([*first, *grids])}


def of_metric(name: str) -> tuple[str, str]:
    """Direction and unit of a metric of gcbench's, of any other none."""
    metric = METRICS.get(name)
    return (metric.direction, metric.unit) if metric else ("neither", "")


def latest_grids(
    by_page: Mapping[str, list[ChartSeries]], axes: Callable[[ChartSeries], dict[str, str]]
) -> dict[str, GridTable]:
    """The last figure of each series that has a policy, by metric."""
    grids = {}
    for series in by_page.values():
        values = [
            (axes(each), each.values[-1])
            for each in series
            if each.values and COLUMN in each.params
        ]
        if values:
            first = series[0]
            name = first.metric if first.metric not in grids else f"{first.suite}.{first.metric}"
            grids[name] = grid_of(values, fmt.short_unit(first.unit), first.direction)
    return ordered(grids)
