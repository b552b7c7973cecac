"""Where the host path matters, measured: each batch and heap, then some predictions afresh."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from engines.builtin.device.profile import DeviceProfile
from harness.axes import AXES, Cell, Value, values, worth_mentioning
from harness.experiment.crossover import (
    LATENCIES,
    Check,
    CheckPlace,
    CrossoverPoint,
    ModelSteps,
    between,
    by_batch,
    host_changes,
    model_steps,
)
from harness.experiment.grid import GROUPED_BY, varying
from harness.experiment.result import ExperimentResult, cell_id
from harness.experiment.run import INTERRUPTED_NOTE
from workloads.schedule import Schedule

_PLACES = ("batch_size", "heap_objects")


FIXED: dict[str, Value] = {
    "device": "null",
    "device_profile": "",
    "output_processing": "inline",
    "num_scheduler_steps": 1,
    "worker": "in-process",
    "wire": AXES["wire"].default,
    "wire_spin": AXES["wire_spin"].default,
    "engine_core": "in-process",
}
"""Host and device take turns in one process: only then does a step's time add to the host's."""


class Bench(NamedTuple):
    """What is compared at one batch; ``compare`` measures some cells, the first the baseline, as an
    experiment whose name ends in a part of its own.
    """

    cells: Sequence[Cell]
    schedule: Schedule
    compare: Callable[[list[Cell], str], ExperimentResult]


class CrossoverRun:
    """The points, then the checks, as far as nobody interrupts.

    ``benches``: by batch, the smallest first, with all heaps. ``say`` is told which of how many
    measurements begins.
    """

    def __init__(
        self, benches: Mapping[int, Bench], num_checks: int, say: Callable[[str], None]
    ) -> None:
        self._benches, self._tell = benches, say
        self.points: list[CrossoverPoint] = []
        self.checks: list[Check] = []
        self.is_complete = True
        self._results: list[ExperimentResult] = []
        self._begun, self._total = 0, len({_place(cell) for cell in self.cells}) + num_checks

    @property
    def cells(self) -> list[Cell]:
        """Of all batches and heaps; the first is the baseline."""
        return [cell for bench in self._benches.values() for cell in bench.cells]

    @property
    def axes(self) -> dict[str, Value]:
        """What all cells share and is worth mentioning."""
        cells = self.cells
        apart = {*varying(cells), *FIXED, "workload"}
        shared = worth_mentioning(values(cells[0]))
        return {axis: value for axis, value in shared.items() if axis not in apart}

    @property
    def schedules(self) -> dict[int, Schedule]:
        """What is replayed at each batch."""
        return {batch: bench.schedule for batch, bench in self._benches.items()}

    @property
    def code_commits(self) -> list[str]:
        """Those that the engines came from."""
        return sorted({each for result in self._results for each in result.code_commits})

    @property
    def notes(self) -> list[str]:
        """What failed and what the measurements have to say, each once."""
        said = [f"No result: {each.reason}." for one in self._results for each in one.failures]
        said += [note for result in self._results for note in result.notes]
        said += [] if self.is_complete else [INTERRUPTED_NOTE]
        return list(dict.fromkeys(said))

    def measure(self) -> None:
        """Every batch and heap, the candidates in turns with their baseline.

        A point is kept as an experiment of its own, in the order in which they are measured.
        """
        for batch, bench in self._benches.items():
            for heap in dict.fromkeys(cell.heap_objects for cell in bench.cells):
                self._begin(f"batch {batch:,}, {heap:,} heap objects")
                cells = [cell for cell in bench.cells if cell.heap_objects == heap]
                result = self._compare(bench, cells, f"{len(self._results) + 1}")
                self.points += _points(result, cells)
                if not self.is_complete:
                    return

    def check(
        self,
        places: Iterable[CheckPlace],
        profiles: Mapping[str, DeviceProfile],
        bench_at: Callable[[CheckPlace], Bench],
    ) -> None:
        """Predictions beside a fresh measurement, one a place, candidate and latency.

        ``bench_at``: the same cells on the place's modelled device.
        """
        for place in places if self.is_complete else ():
            batch, _, profile = place
            self._begin(f"checking batch {batch:,} on {profile}")
            bench = bench_at(place)
            cells = list(bench.cells)
            model = model_steps(profiles[profile], {batch: bench.schedule})
            result = self._compare(bench, cells, f"check-{batch}-{model.name}")
            checks = self._checked(place, model, result, cells)
            self.checks += (each for each in checks if self.is_complete or each.measured)
            if not self.is_complete:
                return

    def _checked(
        self, place: CheckPlace, model: ModelSteps, result: ExperimentResult, cells: list[Cell]
    ) -> Iterator[Check]:
        """What was predicted for a place beside what was measured there, a latency at a time."""
        batch, heap, _ = place
        measured = {point.candidate: point.latencies for point in _points(result, cells)}
        for candidate, latency in product((label(cell, cells) for cell in cells[1:]), LATENCIES):
            host = between(by_batch(self.points, candidate, heap, latency), batch)
            if host is None:
                continue
            found = measured.get(candidate, {}).get(latency)
            yield Check(
                latency=latency,
                candidate=candidate,
                batch_size=batch,
                heap_objects=heap,
                model=model.name,
                predicted=host.on_device(model.seconds(latency, batch)),
                measured=found.change if found else None,
            )

    def _compare(self, bench: Bench, cells: list[Cell], part: str) -> ExperimentResult:
        result = bench.compare(cells, part)
        self._results.append(result)
        self.is_complete = result.is_complete
        return result

    def _begin(self, words: str) -> None:
        self._begun += 1
        self._tell(f"{self._begun} of {self._total}: {words}")


def label(cell: Cell, cells: Sequence[Cell]) -> str:
    """What a cell is called, wherever it stands."""
    return cell_id(cell, _differing(cells))


def _place(cell: Cell) -> tuple[int, int]:
    return cell.batch_size, cell.heap_objects


def _differing(cells: Sequence[Cell]) -> list[str]:
    """The axes in which candidates differ from their baseline at the same place."""
    return [axis for axis in varying(cells) if axis not in _PLACES]


def refuse_unequal(cells: Sequence[Cell]) -> None:
    """Raises ValueError where there is nothing to compare, or what does not compare."""
    axes = _differing(cells)
    if not axes:
        raise ValueError("there is nothing to compare; give an axis two values, such as --gc")
    if unequal := [axis for axis in axes if axis in GROUPED_BY]:
        flag = AXES[unequal[0]].flag
        raise ValueError(f"{flag}: takes one value here; cells of several do not compare")


def _points(result: ExperimentResult, cells: Sequence[Cell]) -> Iterator[CrossoverPoint]:
    """A point for each candidate that has enough rounds."""
    by_id = {cell.id: cell for cell in result.cells}
    baseline, *others = (by_id.get(cell_id(cell, varying(cells))) for cell in cells)
    for cell, other in zip(cells[1:], others, strict=True):
        if baseline is not None and other is not None and (found := host_changes(baseline, other)):
            yield CrossoverPoint(
                candidate=label(cell, cells),
                batch_size=cell.batch_size,
                heap_objects=cell.heap_objects,
                latencies=found,
            )
