"""What templates can name of a stored file: cells of a comparison, points of a crossover, keys of
any other document.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.claims.document import read_document
from harness.axes import Value
from harness.experiment.crossover import CrossoverPoint, CrossoverResult
from harness.experiment.experiment_file import PartsResult
from harness.experiment.result import CellResult, Comparison, ExperimentResult, MetricSamples
from harness.report.collection_words import collections_words
from harness.report.kinds import read_result
from harness.result.result import RESULT_SCHEMA
from harness.statistics.paired_ratio import Ratio, paired_ratio

_TRACED = (ExperimentResult, PartsResult, CrossoverResult)
Stored = ExperimentResult | PartsResult | CrossoverResult | dict[str, Any]


def read_stored(path: Path) -> Stored:
    """A comparison, an experiment's or a crossover, or else the JSON document that another tool has
    printed. Raises StoreError.
    """
    document = read_document(path)
    if document.get("schema") != RESULT_SCHEMA:
        return dict(document)
    result = read_result(path)
    if not isinstance(result, _TRACED):
        raise ValueError(f"{path} is neither a comparison nor a crossover: nothing is traced of it")
    return result


@dataclass(frozen=True, slots=True)
class StoredCell:
    """A cell of a comparison; its metrics stand in brackets: ``{lists[request_throughput]}``."""

    result: ExperimentResult
    cell: CellResult

    def __getitem__(self, metric: str) -> MetricSamples:
        return self.cell.metrics[metric]

    @property
    def axes(self) -> Mapping[str, Value]:
        """Its settings."""
        return self.cell.axes

    @property
    def variants(self) -> int:
        """How many cells the comparison has."""
        return len(self.result.cells)

    @property
    def step(self) -> Any:
        """What its steps' host time is spent on, seconds."""
        return self.cell.step

    @property
    def collections(self) -> str:
        """Of each generation: "920/84/1"."""
        return collections_words(self[f"gc_collections_gen{each}"].value for each in range(3))

    @property
    def collector_share(self) -> float:
        """Of a step's time what collections take, full passes as often as in the long run.

        Raises ValueError where the cell was not timed.
        """
        if self.cell.step is None:
            raise ValueError(f"nothing says what a step of {self.cell.id} is spent on")
        in_step = self.cell.step.young + self.cell.step.full
        steps = self.cell.metrics["num_steps"].value or 0.0
        throughput = self.cell.metrics["request_throughput"].value or 0.0
        return in_step * steps * throughput / self.result.workloads[0].num_requests

    @property
    def change(self) -> Comparison:
        """Against the baseline of its group, in the metric that decides. Raises ValueError."""
        found = [each for each in self.result.comparisons if each.candidate == self.cell.id]
        if len(found) != 1:
            raise ValueError(f"{self.cell.id} is the candidate of {len(found)} comparisons")
        return found[0]


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point of a crossover; in brackets the change of a token's time on a model:
    ``{b32[llama-3-8b-h200].ratio:change}``.
    """

    result: CrossoverResult
    point: CrossoverPoint

    def __getitem__(self, model: str) -> "CellRatio":
        (steps,) = (each for each in self.result.models if each.name == model)
        seconds = steps.seconds("token", self.point.batch_size)
        change, low, high = self.point.latencies["token"].on_device(seconds)
        return CellRatio(1 + change, (1 + low, 1 + high))

    @property
    def small_from(self) -> float:
        """Seconds of a device's step from which on the change is below the tolerance."""
        return self.point.latencies["token"].small_from(self.result.tolerance)[0]


def find(values: Sequence[Value], stored: Stored) -> Any:
    """The cell that has all these values, of whichever axis unless it is named: "worker=process";
    of an experiment after the title of a part. Of a crossover candidate, batch and heap. Of a
    document, what these keys lead to. Raises ValueError.
    """
    named = " · ".join(map(str, values))
    if isinstance(stored, PartsResult):
        parts = {part.title: part.result for part in stored.parts}
        title, *rest = values
        if title not in parts:
            raise ValueError(f"no part is {title}: {', '.join(parts)}")
        return find(rest, parts[str(title)])
    if isinstance(stored, CrossoverResult):
        points = [
            point
            for point in stored.points
            if [point.candidate, point.batch_size, point.heap_objects] == values
        ]
        if len(points) != 1:
            raise ValueError(f"{len(points)} points are {named}: name candidate, batch and heap")
        return StoredPoint(stored, points[0])
    if isinstance(stored, ExperimentResult):
        cells = [cell for cell in stored.cells if all(_has(cell, value) for value in values)]
        if len(cells) != 1:
            raise ValueError(f"{len(cells)} cells are {named}; name one as no other is")
        return StoredCell(stored, cells[0])
    found: Any = stored
    for key in values:
        if not isinstance(found, dict) or key not in found:
            raise ValueError(f"the document has no {named}")
        found = found[key]
    return found


def _has(cell: CellResult, value: Value) -> bool:
    axis, is_named, wanted = str(value).partition("=")
    return str(cell.axes.get(axis)) == wanted if is_named else value in cell.axes.values()


class CellRatio(NamedTuple):
    """Of two cells, with its 95 % interval."""

    ratio: float
    ci95: tuple[float, float]


def ratio_of(of: StoredCell, against: StoredCell, metric: str, per: str = "") -> CellRatio:
    """As the file compares the two, else of their samples paired by round; divided by the ratio of
    the exact metric ``per``. Raises ValueError.
    """
    if of[metric].kind == "exact":
        exact = (of[metric].value or 0.0) / (against[metric].value or 0.0)
        return CellRatio(exact, (exact, exact))
    names = metric, of.cell.id, against.cell.id
    compared = [
        each
        for each in of.result.comparisons
        if (each.metric, each.candidate, each.baseline) == names
    ]
    found: Comparison | Ratio = (
        compared[0] if compared else paired_ratio(_samples(against[metric]), _samples(of[metric]))
    )
    by = (of[per].value or 0.0) / (against[per].value or 0.0) if per else 1.0
    return CellRatio(found.ratio / by, (found.ci95[0] / by, found.ci95[1] / by))


def _samples(metric: MetricSamples) -> list[float]:
    return [float("nan") if each is None else each for each in metric.samples]
