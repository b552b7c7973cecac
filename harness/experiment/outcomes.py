"""The usable results of a plan, by cell: what was timed, what was counted, what failed."""

from collections import Counter
from collections.abc import Hashable, Mapping
from copy import copy

from harness.axes import Cell
from harness.experiment.composed import CellTrials, pass_costs
from harness.experiment.grid import group_key
from harness.experiment.machine_speed import TimedResults, at_usual_speed
from harness.experiment.plan import EXACT_ROUND, Plan, stands_for
from harness.experiment.store import TrialKey
from harness.metrics import Metric
from harness.trial.spec import TrialFailure, TrialResult

Samples = list[float | None]


class Trials:
    """The usable results of a plan, by cell."""

    def __init__(self, plan: Plan, outcomes: Mapping[TrialKey, TrialResult | TrialFailure]) -> None:
        self.plan = plan
        self.num_rounds = max((key.round for key in outcomes), default=0)
        copies = (cell for rotation in plan.timed for cell in rotation)
        timed = dict.fromkeys([*plan.cells, *copies])
        timings: dict[Cell, dict[int, TrialResult]] = {cell: {} for cell in timed}
        self.timings: TimedResults = timings
        self.counted: dict[tuple[str, Cell], TrialResult] = {}
        self.counts: dict[Cell, Counter[tuple[int, int, int]]] = {}
        self.failures: list[TrialFailure] = []
        self.invalid: list[TrialResult] = []
        for key, outcome in sorted(outcomes.items()):
            if isinstance(outcome, TrialFailure):
                self.failures.append(outcome)
            elif outcome.invalid:
                self.invalid.append(outcome)
            elif key.round == EXACT_ROUND:
                self.counted[outcome.mode, outcome.cell] = outcome
                if outcome.mode == "counts":
                    by_count = self.counts.setdefault(outcome.cell, Counter())
                    by_count[outcome.processes[0].collections] += 1
            elif outcome.cell in timings:
                timings[outcome.cell][key.round] = outcome

    def at_usual_speed(self) -> "Trials":
        """The same, wall times as they are at the machine's usual speed where trials took turns."""
        found = copy(self)
        found.timings = at_usual_speed(self.plan.rotations, self.timings)
        return found

    @property
    def results(self) -> list[TrialResult]:
        """All of them, timed and counted."""
        timed = [result for rounds in self.timings.values() for result in rounds.values()]
        return [*timed, *self.counted.values()]

    @property
    def nodes(self) -> dict[str, int]:
        """How many blocks each node has timed; none where all ran on this machine."""
        blocks = {
            (result.node, number, group_key(cell))
            for cell, rounds in self.timings.items()
            for number, result in rounds.items()
            if result.node
        }
        return dict(sorted(Counter(node for node, *_ in blocks).items()))

    def samples(self, cell: Cell, metric: str) -> Samples:
        """A value per timing round, None where the round gave none."""
        rounds = self.timings[cell]
        return [
            rounds[number].metrics.get(metric) if number in rounds else None
            for number in range(1, self.num_rounds + 1)
        ]

    def pairs(
        self, first: Cell, second: Cell, metric: str
    ) -> list[tuple[TrialResult, TrialResult]]:
        """Results of two cells by round, where both have the metric and are of one block."""
        mine, theirs = self.timings[first], self.timings[second]
        both = [(mine[number], theirs[number]) for number in sorted(mine.keys() & theirs.keys())]
        return [
            (a, b)
            for a, b in both
            if a.block == b.block and None not in (a.metrics.get(metric), b.metrics.get(metric))
        ]

    def why_untimed(self, cell: Cell) -> str | None:
        """Why a cell that was to be timed has no usable timing, "" where `failures` say it.

        None for a cell that has one, or was not tried.
        """
        if self.timings[cell] or not self.plan.rounds:
            return None
        if any(each.cell == cell for each in self.failures):
            return ""
        return next((each.invalid for each in self.invalid if each.cell == cell), None)

    def counted_in(self, mode: str, cell: Cell) -> TrialResult | None:
        """The trial that counts for a cell in a mode, if it gave a result."""
        return self.counted.get((mode, stands_for(cell, mode)))

    def sides(self) -> dict[Cell, CellTrials]:
        """What is known of each timed cell's full passes; what one takes is of all like heaps."""
        heaps: dict[Hashable, list[TrialResult]] = {}
        for cell, rounds in self.timings.items():
            heaps.setdefault(_heap(cell, rounds), []).extend(rounds.values())
        costs = {heap: pass_costs(results) for heap, results in heaps.items()}
        return {
            cell: CellTrials(
                [*rounds.values()],
                counted.long_run if (counted := self.counted_in("long_run", cell)) else None,
                costs[_heap(cell, rounds)],
            )
            for cell, rounds in self.timings.items()
        }

    def counted_value(self, cell: Cell, metric: Metric) -> float | None:
        """The value of a trial that counts, if there is one for the metric's mode."""
        result = self.counted_in(metric.mode, cell)
        return result.metrics.get(metric.name) if result else None


def _heap(cell: Cell, rounds: Mapping[int, TrialResult]) -> Hashable:
    """Of the cells whose full passes take alike: what is not frozen is as large."""
    states = [p.state for r in rounds.values() for p in r.processes if p.role == "engine"]
    if any(2 * state.freeze_count > state.tracked_objects for state in states):
        return cell
    names = ("python", "engine", "release", "workload", "heap_objects", "batch_size")
    return tuple(getattr(cell, name) for name in names)
