"""From the trials of a grid to what asv stores: a number, samples, or why there is neither."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypedDict

import msgspec
import numpy as np

from harness.axes import Cell
from harness.experiment.outcomes import Samples
from harness.experiment.plan import without_collector
from harness.experiment.result import CellResult
from harness.experiment.store import read_rows
from harness.statistics.percentile import percentile_or_none
from harness.suites.grid import Point, Tracked
from harness.suites.measure import SuiteRun
from harness.trial.spec import TrialFailure, TrialResult

_FROM_ANOTHER_TIME = re.compile(r"\b(Import|ModuleNotFound|Attribute|Type|Name)Error\b")


class Sampled(TypedDict):
    """A sample for each round. That a ``track_*`` may return it is not in asv's documentation."""

    samples: list[float]
    number: int


Figure = float | Sampled
Figures = dict[tuple[str, Point], Figure | str]
"""By metric and parameters; a sentence stands where there is no figure."""


def figures(table: Iterable[Tracked], measured: Sequence[SuiteRun]) -> Figures:
    """Each metric at each tuple of parameters, or the sentence that says why it has no figure.

    Raises ValueError where no cell has given anything, or where cells of a workload have
    produced different tokens.
    """
    cells = {_of_no_commit(cell): cell for each in measured for cell in each.result.cells}
    reasons = dict(reason for each in measured for reason in _reasons(each))
    if not cells:
        raise ValueError(_nothing_measured(reasons, measured))
    _check_work(cells.values())
    found: Figures = {}
    for tracked in table:
        name = tracked.metric.name
        for point in tracked.points():
            cell = tracked.cell(point)
            metric = cells[cell].metrics.get(name) if cell in cells else None
            value = figure(metric.samples) if metric else None
            reason = reasons.get(cell) or reasons.get(without_collector(cell))
            without = reason or f"no trial of this cell gave {name}"
            found[name, point] = without if value is None else value
    return found


def figure_at(figures: Figures, metric: str, point: Point) -> Figure:
    """What asv stores; where there is no figure NaN, with the sentence on standard output."""
    found = figures[metric, point]
    if isinstance(found, str):
        print(found)
        return math.nan
    return found


def figure(samples: Samples) -> Figure | None:
    """All samples there are; a single one, as an exact metric has, as a number."""
    known = [sample for sample in samples if sample is not None]
    if len(known) < 2:
        return known[0] if known else None
    return {"samples": known, "number": 1}


def pooled_itl_p99(measured: SuiteRun, cell: Cell) -> float | None:
    """The 99th percentile over the steps of all rounds together, each with its worst gap, in s.

    A round has fewer steps than the 662 that a p99 needs, all rounds together have more. They are
    equally long, so each weighs alike. It is one figure a commit: figures of resampled rounds
    would share their steps, and asv would take them for independent samples.
    """
    gaps = [
        read_rows(measured.ran.store.folder / "rows" / f"{key}-steps.parquet")["worst_gap_ns"]
        for key, outcome in measured.ran.outcomes.items()
        if isinstance(outcome, TrialResult)
        and not outcome.invalid
        and _of_no_commit(outcome.cell) == cell
    ]
    pooled = np.concatenate([np.zeros(0, np.int64), *gaps])
    return percentile_or_none(pooled[pooled > 0] / 1e9, 99)


def _of_no_commit(cell: CellResult | Cell) -> Cell:
    axes = cell.axes if isinstance(cell, CellResult) else msgspec.structs.asdict(cell)
    return msgspec.convert(axes | {"release": ""}, Cell)


def _reasons(measured: SuiteRun) -> Iterator[tuple[Cell, str]]:
    for outcome in measured.ran.outcomes.values():
        if isinstance(outcome, TrialFailure):
            yield _of_no_commit(outcome.cell), outcome.reason
        elif outcome.invalid:
            yield _of_no_commit(outcome.cell), outcome.invalid


def _nothing_measured(reasons: dict[Cell, str], measured: Sequence[SuiteRun]) -> str:
    failures = [failure for each in measured for failure in each.result.failures]
    if failures and failures[0].kind == "crashed" and _FROM_ANOTHER_TIME.search(failures[0].reason):
        return f"this commit's engines do not fit this harness: {failures[0].reason}"
    return f"no cell could be measured: {next(iter(reasons.values()), 'there was none')}"


def _check_work(cells: Iterable[CellResult]) -> None:
    first: dict[tuple[str, ...], CellResult] = {}
    for cell in cells:
        workload, tokenizer = str(cell.axes["workload"]), str(cell.axes["tokenizer"])
        other = first.setdefault((workload,), cell)
        if cell.tokens_sha256 != other.tokens_sha256:
            raise ValueError(_other_work(cell, "tokens", other))
        if cell.text_sha256:
            other = first.setdefault((workload, tokenizer), cell)
            if cell.text_sha256 != other.text_sha256:
                raise ValueError(_other_work(cell, "text", other))


def _other_work(cell: CellResult, what: str, other: CellResult) -> str:
    return (
        f"{cell.id} produced other {what} than {other.id}: different work has no figures in "
        "common, so none is taken of this commit"
    )
