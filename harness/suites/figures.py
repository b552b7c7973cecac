"""From the trials of a grid to what asv stores: a number, samples, or why there is neither."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypedDict

import msgspec
import numpy as np

from harness.axes import Cell
from harness.experiment.outcomes import Samples
from harness.experiment.plan import without_collector
from harness.experiment.result import CellResult
from harness.experiment.same_work import text_rules
from harness.experiment.store import read_rows
from harness.not_measured import NotMeasured
from harness.statistics.percentile import percentile_or_none
from harness.suites.grid import GridPoint, Tracked
from harness.suites.measure import SuiteRun
from harness.trial.spec import TrialFailure, TrialResult


class AsvSamples(TypedDict):
    """A sample for each round. That a ``track_*`` may return it is not in asv's documentation."""

    samples: list[float]
    number: int


AsvFigure = float | AsvSamples
Figures = dict[tuple[str, GridPoint], AsvFigure | NotMeasured]
"""By metric and parameters."""


def figures(table: Iterable[Tracked], measured: Sequence[SuiteRun]) -> Figures:
    """Each metric at each tuple of parameters, or the sentence that says why it has no figure.

    Raises ValueError where no cell has given anything.
    """
    cells = {_of_no_commit(cell): cell for each in measured for cell in each.result.cells}
    reasons = dict(reason for each in measured for reason in _reasons(each))
    if not cells:
        raise ValueError(_nothing_measured(reasons))
    reasons |= (other_work := _other_work(cells))
    found: Figures = {}
    for tracked in table:
        name = tracked.metric.name
        for point in tracked.points():
            cell = tracked.cell(point)
            is_known = cell in cells and cell not in other_work
            metric = cells[cell].metrics.get(name) if is_known else None
            value = asv_figure(metric.samples) if metric else None
            reason = reasons.get(cell) or reasons.get(without_collector(cell))
            without = reason or f"no trial of this cell gave {name}"
            found[name, point] = NotMeasured(without) if value is None else value
    return found


def figure_at(figures: Figures, metric: str, point: GridPoint) -> AsvFigure:
    """What asv stores; where there is no figure NaN, with the sentence on standard output."""
    found = figures[metric, point]
    if isinstance(found, NotMeasured):
        print(found.reason)
        return math.nan
    return found


def asv_figure(samples: Samples) -> AsvFigure | None:
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


def _nothing_measured(reasons: dict[Cell, str]) -> str:
    return f"no cell could be measured: {next(iter(reasons.values()), 'there was none')}"


def _other_work(cells: Mapping[Cell, CellResult]) -> dict[Cell, str]:
    """By cell why it has no figure: cells of its workload have done different work.

    Nobody knows which of them is right, so none of these has one; those of other workloads do.
    """
    return {
        cell: sentence
        for what, of_work in (
            ("tokens", lambda cell: (cell.workload,)),
            ("text", lambda cell: (cell.workload, *text_rules(cell))),
        )
        for alike in _grouped(cells, what, of_work).values()
        if (sentence := _disagreement(what, [cells[cell] for cell in alike]))
        for cell in alike
    }


def _grouped(
    cells: Mapping[Cell, CellResult], what: str, of_work: Callable[[Cell], tuple[str, ...]]
) -> dict[tuple[str, ...], list[Cell]]:
    """Cells that should have produced the same, as far as they have produced any of it."""
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell, result in cells.items():
        if _hash(what, result):
            groups.setdefault(of_work(cell), []).append(cell)
    return groups


def _hash(what: str, result: CellResult) -> str | list[str]:
    return result.tokens_sha256 if what == "tokens" else result.text_sha256


def _disagreement(what: str, results: Sequence[CellResult]) -> str:
    first = results[0]
    other = next((each for each in results if _hash(what, each) != _hash(what, first)), None)
    if other is None:
        return ""
    return (
        f"{other.id} produced other {what} than {first.id}: different work has no figures in "
        "common, so none is taken of this workload"
    )
