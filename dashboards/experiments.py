"""Experiments' summaries, published or of one's own, as grids, and along vLLM's releases."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from dashboards.grid import COLUMN, Grid, GridCell, against, layout
from dashboards.releases import ReleaseStudy, release_study
from dashboards.series import Series
from harness import format as fmt
from harness.experiment.result import CellResult, ExperimentResult
from harness.experiment.store import INCOMPLETE as INCOMPLETE_FILE
from harness.experiment.store import load_experiment
from harness.files import StoreError
from harness.machine.describe import Machine
from harness.metrics import METRICS
from harness.report.header import INCOMPLETE, header, varying_axes
from harness.tracking.folders import down_to, json_files
from workloads.regular_file import open_regular

ALWAYS = ("representation", "delivery")
"""Axes that a grid names, whether they vary or not."""

_FIRST = (
    "request_throughput", "host_time_per_request_step", "gc_pause_share", "gc_pause_max",
    "gc_collections_gen0", "gc_collections_gen1", "gc_collections_gen2", "gc_effect",
    "tracked_peak_per_step", "tracked_survivors_per_step", "tpot_median",
)  # fmt: skip


class Experiment(NamedTuple):
    """``grids``: one a metric, by name, those that are asked for most first.

    ``releases``: what there is to show along them, where there are several. ``incomplete``: in a
    sentence why this is not all that was to be measured, or "".
    """

    name: str
    about: list[tuple[str, str]]
    notes: list[str]
    machine: Machine | None
    releases: ReleaseStudy | None
    grids: dict[str, Grid]
    incomplete: str = ""

    @property
    def label(self) -> str:
        """The name, with a word on what is incomplete."""
        return f"{self.name} (incomplete)" if self.incomplete else self.name


def read_experiments(root: Path, problems: list[str]) -> list[Experiment]:
    """All summaries in a folder, in its ``published`` and in folders of raw trials below it."""
    found = []
    for path in _files(root, problems):
        try:
            result = load_experiment(path)
        except StoreError as problem:
            problems.append(f"{problem}; left out")
            continue
        if result.cells or not result.is_complete:
            name = path.parent.name if path.name == "experiment.json" else path.stem
            is_whole = result.is_complete and not path.with_name(INCOMPLETE_FILE).exists()
            found.append(_experiment(name, result)._replace(incomplete=_why(is_whole)))
    return found


def _why(is_whole: bool) -> str:
    return "" if is_whole else f"Incomplete: {INCOMPLETE}."


def without_summary(trials: pd.DataFrame, known: set[str], root: Path) -> list[Experiment]:
    """Grids of raw trials whose experiment has no summary, medians over what there is.

    One that says of itself that trials are missing is there even without any.
    """
    found = []
    marked = {folder.name for folder in down_to(root, 2, []) if (folder / INCOMPLETE_FILE).exists()}
    axes = ("workload", "engine", "release", *ALWAYS, COLUMN, "batch_size", "worker",
            "heap_objects")  # fmt: skip
    of_mode = {name: metric.mode for name, metric in METRICS.items()}
    own = trials["metric"].map(of_mode).astype(object) == trials["mode"].astype(object)
    usable = trials[own & (trials["invalid"].astype(str) == "")]
    for name, rows in usable.groupby("experiment", observed=True):
        if str(name) in known:
            continue
        varying = [axis for axis in axes if axis in (*ALWAYS, COLUMN) or rows[axis].nunique() > 1]
        medians = rows.groupby(["metric", *varying], observed=True, sort=False)["value"].median()
        grids = {}
        for metric, part in medians.groupby("metric", observed=True, sort=False):
            direction, unit = _of_metric(str(metric))
            values = [
                ({axis: str(row[axis]) for axis in varying}, float(row["value"]))
                for row in part.reset_index().to_dict("records")
                if not pd.isna(row["value"])
            ]
            if values:
                grids[str(metric)] = _grid(values, unit, direction)
        if grids:
            about = [("figures", "medians over the trials there are; there is no summary")]
            found.append(Experiment(
                str(name), about, [], None, None, _ordered(grids), _why(name not in marked)
            ))  # fmt: skip
    empty = sorted(marked - known - {each.name for each in found})
    found += [Experiment(name, [], [], None, None, {}, _why(is_whole=False)) for name in empty]
    return found


def _files(root: Path, problems: list[str]) -> Iterator[Path]:
    for folder in (root, root / "published"):
        if folder.is_dir():
            yield from (path for path in json_files(folder, problems)
                        if _is_summary(path))  # fmt: skip
    for folder in down_to(root, 2, problems):
        path = folder / "experiment.json"
        if path.is_file() and folder != root:
            yield path


def _is_summary(path: Path) -> bool:
    """Whether a file is meant as one: in ``published`` all are, elsewhere those that say so."""
    if path.parent.name == "published":
        return True
    try:
        with open_regular(path) as file:
            return b'"cells"' in file.read(4096)
    except OSError:
        return False


def _experiment(name: str, result: ExperimentResult) -> Experiment:
    varying = [axis for axis in varying_axes(result) if axis not in ("copy",)]
    axes = list(dict.fromkeys([*(axis for axis in varying if axis != COLUMN), *ALWAYS, COLUMN]))
    if len({cell.axes.get("release") for cell in result.cells}) > 1:
        axes = [axis for axis in axes if axis in varying or axis == COLUMN]
    metrics = dict.fromkeys(name for cell in result.cells for name in cell.metrics)
    grids = {}
    for metric in metrics:
        values = [
            ({axis: _shown(cell, axis) for axis in axes}, samples.median)
            for cell in result.cells
            if (samples := cell.metrics.get(metric)) and samples.median is not None
        ]
        if values:
            first = next(c.metrics[metric] for c in result.cells if metric in c.metrics)
            grids[metric] = _grid(values, first.unit, first.direction)
    return Experiment(
        name=name,
        about=header(result),
        notes=result.notes,
        machine=result.machine,
        releases=release_study(result),
        grids=_ordered(grids),
    )


def _shown(cell: CellResult, axis: str) -> str:
    return str(cell.axes.get(axis, "")) or "–"


def _grid(values: list[tuple[dict[str, str], float]], unit: str, direction: str) -> Grid:
    baseline_axes, baseline = values[0]
    cells = []
    for axes, value in values:
        words, shade = against(value, baseline, direction)
        if axes == baseline_axes:
            words, shade = "baseline", 0
        cells.append((axes, GridCell(fmt.with_unit(value, unit).strip(), words, shade)))
    better = {"higher": "higher is better", "lower": "lower is better"}.get(direction, "")
    return layout(cells, better)


def _ordered(grids: dict[str, Grid]) -> dict[str, Grid]:
    first = [name for name in _FIRST if name in grids]
    return {name: grids[name] for name in dict.fromkeys([*first, *grids])}


def _of_metric(name: str) -> tuple[str, str]:
    metric = METRICS.get(name)
    return (metric.direction, metric.unit) if metric else ("neither", "")


def latest_figures(
    by_page: Mapping[str, list[Series]], axes: Callable[[Series], dict[str, str]]
) -> list[Experiment]:
    """The last figure of each series that has a policy, as if it were an experiment."""
    grids = {}
    for series in by_page.values():
        values = [(axes(each), each.values[-1]) for each in series
                  if each.values and COLUMN in each.params]  # fmt: skip
        if values:
            first = series[0]
            name = first.metric if first.metric not in grids else f"{first.suite}.{first.metric}"
            grids[name] = _grid(values, fmt.short_unit(first.unit), first.direction)
    about = [("figures", "the last of each series, of whichever commit")]
    return [Experiment("asv's last figures", about, [], None, None, _ordered(grids))] * bool(grids)
