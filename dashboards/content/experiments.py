"""Experiments' summaries, published or of one's own, and raw trials that have none."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from dashboards.content.experiment_grids import (
    ALWAYS,
    grid_of,
    grids_of,
    latest_grids,
    of_metric,
    ordered,
)
from dashboards.content.grid import COLUMN, GridTable
from dashboards.content.releases import ReleaseStudy, release_study
from dashboards.content.series import ChartSeries
from dashboards.names import Names
from dashboards.pictures.intervals import IntervalPicture, pictures
from harness.experiment.result import ExperimentResult
from harness.experiment.store import INCOMPLETE_FILE
from harness.files import StoreError
from harness.machine.describe import Machine
from harness.metrics import METRICS
from harness.report.conclusion import conclude
from harness.report.header import INCOMPLETE, header
from harness.report.kinds import experiment_of, read_result
from harness.report.what_to_do import experiment_advice
from harness.result.result import RESULT_FILE
from harness.tracking.folders import down_to, json_files
from workloads.files.regular_file import open_regular

_DATE = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d)(\d\d)-")


class Experiment(NamedTuple):
    """``grids``: one a metric, by name, the one that decides and those asked for most first.

    ``date``: when it began, "" where its name does not say. ``conclusion``: sentences;
    ``advice``: what to do.
    ``releases``: what there is to show along them, where there are several. ``incomplete``: in a
    sentence why this is not all that was to be measured, or "". ``nodes``: of a cluster, with the
    blocks that each has measured.
    """

    name: str
    page: str
    about: list[tuple[str, str]]
    notes: list[str]
    machine: Machine | None
    releases: ReleaseStudy | None
    grids: dict[str, GridTable]
    date: str = ""
    conclusion: Sequence[str] = ()
    advice: str = ""
    pictures: Sequence[IntervalPicture] = ()
    incomplete: str = ""
    nodes: Mapping[str, int] = {}

    @property
    def label(self) -> str:
        """The name, with a word on what is incomplete."""
        return f"{self.name} (incomplete)" if self.incomplete else self.name


def read_experiments(root: Path, problems: list[str], names: Names) -> list[Experiment]:
    """All summaries in a folder, in its ``published`` and in folders of raw trials below it."""
    found = []
    for path in _files(root, problems):
        try:
            result = experiment_of(read_result(path))
        except StoreError as problem:
            problems.append(f"{problem}; left out")
            continue
        if result is not None and (result.cells or not result.is_complete):
            name = path.parent.name if path.name == RESULT_FILE else path.stem
            is_whole = result.is_complete and not path.with_name(INCOMPLETE_FILE).exists()
            read = _experiment(name, names.of(name), result)
            found.append(read._replace(incomplete=_why(is_whole)))
    return found


def newest_first(experiments: Iterable[Experiment]) -> list[Experiment]:
    """By the dates in their names; those without one last."""
    return sorted(experiments, key=lambda each: each.date, reverse=True)


def _why(is_whole: bool) -> str:
    return "" if is_whole else f"Incomplete: {INCOMPLETE}."


def without_summary(
    trials: pd.DataFrame, known: set[str], root: Path, names: Names
) -> list[Experiment]:
    """Grids of raw trials whose experiment has no summary, medians over what there is.

    One that says of itself that trials are missing is there even without any.
    """
    found = []
    marked = {folder.name for folder in down_to(root, 2, []) if (folder / INCOMPLETE_FILE).exists()}
    axes = (
        "workload",
        "engine",
        "release",
        *ALWAYS,
        COLUMN,
        "batch_size",
        "worker",
        "heap_objects",
    )
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
            direction, unit = of_metric(str(metric))
            values = [
                ({axis: str(row[axis]) for axis in varying}, float(row["value"]))
                for row in part.reset_index().to_dict("records")
                if not pd.isna(row["value"])
            ]
            if values:
                grids[str(metric)] = grid_of(values, unit, direction)
        if grids:
            about = [("figures", "medians over the trials there are; there is no summary")]
            found.append(
                Experiment(
                    str(name),
                    names.of(str(name)),
                    about,
                    [],
                    None,
                    None,
                    ordered(grids),
                    date_of(str(name)),
                    incomplete=_why(name not in marked),
                )
            )
    empty = sorted(marked - known - {each.name for each in found})
    found += [
        Experiment(
            name,
            names.of(name),
            [],
            [],
            None,
            None,
            {},
            date_of(name),
            incomplete=_why(is_whole=False),
        )
        for name in empty
    ]
    return found


def _files(root: Path, problems: list[str]) -> Iterator[Path]:
    for folder in (root, root / "published"):
        if folder.is_dir():
            yield from (path for path in json_files(folder, problems) if _is_summary(path))
    for folder in down_to(root, 2, problems):
        path = folder / RESULT_FILE
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


def date_of(name: str) -> str:
    """When an experiment began, as its name says: "2026-11-23 04:12"; "" where it does not."""
    found = _DATE.match(name)
    return f"{found[1]} {found[2]}:{found[3]}" if found else ""


def _experiment(name: str, page: str, result: ExperimentResult) -> Experiment:
    releases = release_study(result)
    return Experiment(
        name=name,
        page=page,
        about=[*header(result), ("command", result.command)],
        notes=result.notes,
        machine=result.machine,
        releases=releases,
        grids=grids_of(result),
        date=date_of(result.name),
        conclusion=[*([f"{releases.headline}."] if releases else []), *conclude(result)],
        advice="" if releases else experiment_advice(result),
        pictures=pictures(result),
        nodes=result.nodes,
    )


def latest_figures(
    by_page: Mapping[str, list[ChartSeries]], axes: Callable[[ChartSeries], dict[str, str]]
) -> list[Experiment]:
    """The last figure of each series that has a policy, as if it were an experiment."""
    about = [("figures", "the last of each series, of whichever commit")]
    grids = latest_grids(by_page, axes)
    return [Experiment("asv's last figures", "", about, [], None, None, grids)] * bool(grids)
