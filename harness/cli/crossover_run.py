"""What `gcbench crossover` measures: each batch and heap, then some predictions afresh."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from rich.console import Console

from engines.builtin.device.profile import DeviceProfile
from harness.axes import AXES, Cell
from harness.cli.session import Session
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
_REQUESTS = 4
"""Requests for each place in the batch, so that most of them begin while it is full."""


class CrossoverRun:
    """The points, then the checks, as far as nobody interrupts.

    ``sessions``: by batch, the smallest first. Raises ValueError where one of them cannot be run,
    or where its cells do not compare.
    """

    def __init__(self, flags: Mapping[str, Any], rounds: int, num_checks: int) -> None:
        self._flags, self._rounds = dict(flags), rounds
        batches, heaps = sorted(flags["batch_size"]), flags["heap_objects"]
        self.first = Session(_at(flags, batches[0]))
        others = {
            batch: Session(_at(flags, batch) | {"json_path": None}, beside=self.first)
            for batch in batches[1:]
        }
        self.sessions = {batches[0]: self.first} | others
        _refuse_unequal(self.cells)
        self.name = self.first.runner.new_name("crossover")
        self.points: list[CrossoverPoint] = []
        self.checks: list[Check] = []
        self.is_complete = True
        self._results: list[ExperimentResult] = []
        self._console = Console(stderr=True, quiet=flags["quiet"], highlight=False, soft_wrap=True)
        self._begun, self._total = 0, len(batches) * len(heaps) + num_checks

    @property
    def cells(self) -> list[Cell]:
        """Of all batches and heaps; the first is the baseline."""
        return [cell for session in self.sessions.values() for cell in session.grid.cells]

    @property
    def schedules(self) -> dict[int, Schedule]:
        """What is replayed at each batch."""
        return {
            batch: next(iter(session.runner.schedules.values()))
            for batch, session in self.sessions.items()
        }

    @property
    def notes(self) -> list[str]:
        """What was left out and what failed, each once."""
        said = list(self.first.notes)
        said += [f"No result: {each.reason}." for one in self._results for each in one.failures]
        said += [note for result in self._results for note in result.notes]
        said += [] if self.is_complete else [INTERRUPTED_NOTE]
        return list(dict.fromkeys(said))

    def measure(self) -> None:
        """Every batch and heap, the candidates in turns with their baseline.

        A point is kept as an experiment of its own, in the order in which they are measured.
        """
        self.first.look_around()
        for batch, session in self.sessions.items():
            for heap in self._flags["heap_objects"]:
                self._say(f"batch {batch:,}, {heap:,} heap objects")
                cells = [cell for cell in session.grid.cells if cell.heap_objects == heap]
                result = self._compare(session, cells, f"{len(self._results) + 1}")
                self.points += _points(result, cells)
                if not self.is_complete:
                    return

    def check(self, places: Iterable[CheckPlace], profiles: Mapping[str, DeviceProfile]) -> None:
        """Predictions beside a fresh measurement, one a place, candidate and latency."""
        for place in places if self.is_complete else ():
            batch, heap, profile = place
            self._say(f"checking batch {batch:,} on {profile}")
            modelled = {"device": ["modelled"], "device_profile": [profile], "heap_objects": [heap]}
            session = Session(
                _at(self._flags, batch) | modelled | {"json_path": None}, beside=self.first
            )
            cells = session.grid.cells
            schedule = session.runner.schedules[cells[0].workload]
            model = model_steps(profiles[profile], {batch: schedule})
            result = self._compare(session, cells, f"check-{batch}-{model.name}")
            self.checks += self._checked(place, model, result, cells)
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

    def _compare(self, session: Session, cells: list[Cell], part: str) -> ExperimentResult:
        plan = session.plan(
            cells, rounds=self._rounds, decide=LATENCIES["token"], name=f"{self.name}.{part}"
        )
        result = session.summarise(session.run(plan))
        self._results.append(result)
        self.is_complete = result.is_complete
        return result

    def _say(self, words: str) -> None:
        """Which of how many measurements begins; each has a bar of its own."""
        self._begun += 1
        self._console.print(f"{self._begun} of {self._total}: {words}")


def label(cell: Cell, cells: Sequence[Cell]) -> str:
    """What a cell is called, wherever it stands."""
    return cell_id(cell, _differing(cells))


def _at(flags: Mapping[str, Any], batch_size: int) -> dict[str, Any]:
    """The flags of one batch, which requests keep full unless they say otherwise."""
    concurrency = max(1, batch_size)  # a batch of none is refused for what it is
    return dict(flags) | {
        "batch_size": [batch_size],
        "num_requests": flags["num_requests"] or _REQUESTS * concurrency,
        "arrivals": flags["arrivals"] or f"closed_loop:{concurrency}",
    }


def _differing(cells: Sequence[Cell]) -> list[str]:
    """The axes in which candidates differ from their baseline at the same place."""
    return [axis for axis in varying(cells) if axis not in _PLACES]


def _refuse_unequal(cells: Sequence[Cell]) -> None:
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
