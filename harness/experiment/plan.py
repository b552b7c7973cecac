"""What an experiment will run: cells, rounds, and the trials in the order of their turn."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from harness.axes import Cell
from harness.collector.policy import parse_policy
from harness.collector.state import collects_by_itself
from harness.experiment.grid import groups, steps_alike, traits
from harness.experiment.same_origin import launched
from harness.experiment.trial_key import TrialKey, trial_key
from harness.trial.modes import MODES
from harness.trial.output_hashes import QualifiedName
from harness.trial.spec import Mode, Trial

EXACT_ROUND = 0
"""Round number under which trials that are not timings are kept; timing rounds count from 1."""

COLLECTING: tuple[Mode, ...] = ("counts", "probed", "sites")
"""Modes that count under the cell's own collector; the others switch it off."""

BRIEF: dict[Mode, int] = {"tracked": 96, "memory": 96, "opcodes": 96, "instructions": 96, "grid": 1}
"""Modes that watch some steps of a full batch, or something else, and how many steps of the
schedule they serve; the others run to the end."""

CROSSING: tuple[Mode, ...] = ("wire",)
"""Modes that look at what crosses to workers, where anything does."""

SLICE_STEPS = 2
"""Steps from one turn to the next: a virtual machine's speed changes within a second.

Columns on the null device, 8 rounds, interleaved twice on two quiet cores: turns of 25 steps detect
5 to 10 %, of 8 0.8 to 8 %, of 2 1.6 to 2.6 %, of 1 0.6 to 2.3 %.
"""

_BESIDE = 9
"""Cells that share a copy of their baseline: each waits for its turn in an interpreter, which holds
a heap, and the more there are the longer ago its baseline's turn was."""

_GOLDEN = (5**0.5 - 1) / 2


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment as asked for; two with equal plans can be resumed as one.

    ``schedules`` maps a workload to the hash of its schedule. A group has an entry in
    ``baselines``, the index of its baseline, and in ``decide``, the metric that decides.
    ``repeats`` is how many trials count collections in the first of the cells that differ in
    the collector alone; one counts in each other. The cells of a rotation of ``rotations`` take
    turns in each round, slice by slice of ``slice_steps`` steps; without any each cell is timed
    alone. A baseline stands in several rotations, each time as another copy. ``trace_every``: of a
    trial in mode ``opcodes``, and ``lines_of``, in mode ``outputs``: see `Trial`.
    """

    name: str
    cells: list[Cell]
    schedules: dict[str, str]
    baselines: list[int]
    decide: list[str]
    rounds: int
    seed: int
    tolerance: float
    extra_modes: list[Mode]
    repeats: int = 1
    rotations: list[list[Cell]] = []
    slice_steps: int = 0
    trace_every: int = 0
    lines_of: list[QualifiedName] = []

    @property
    def timed(self) -> list[list[Cell]]:
        """What a round times, rotation by rotation."""
        return self.rotations or [[cell] for cell in self.cells]


@dataclass(frozen=True, slots=True)
class Turn:
    """A trial's turn: its round, its place in the round, its cell, mode and seed.

    ``rotation``: those with which it takes turns, by number; -1 for a trial that counts.
    ``gc_cycle``: where a window opens between two full passes, as `Trial` has it.
    """

    round: int
    place: int
    cell: Cell
    mode: Mode
    seed: int
    max_steps: int = 0
    rotation: int = -1
    gc_cycle: float = 0.0

    @property
    def key(self) -> TrialKey:
        """Under which its outcome is kept."""
        return trial_key(self.round, self.place, self.cell, self.mode)


def exact_turns(plan: Plan) -> list[Turn]:
    """Trials that count rather than time, one for each answer that cells do not share.

    Where the first cell counts alike again, so do those beside it: it alone is repeated.
    """
    turns: dict[tuple[Mode, Cell, int], Turn] = {}
    first: dict[Cell, Cell] = {}
    for mode in plan.extra_modes:
        for cell in plan.cells:
            counted = stands_for(cell, mode)
            if not says_something(counted, mode):
                continue
            is_sampled = mode == "opcodes" and plan.trace_every
            max_steps = 0 if is_sampled else BRIEF.get(mode, 0)
            is_first = first.setdefault(without_collector(cell), cell) == cell
            for again in range(plan.repeats if mode == "counts" and is_first else 1):
                turn = Turn(EXACT_ROUND, len(turns), counted, mode, plan.seed, max_steps)
                turns.setdefault((mode, counted, again), turn)
    return list(turns.values())


def says_something(cell: Cell, mode: Mode) -> bool:
    """Whether a trial of the cell has an answer in a mode that counts."""
    if mode in CROSSING:
        return traits(cell).has_messages
    if mode == "long_run":
        return has_long_run(cell)
    if MODES[mode].under:  # which sees one process, and whose start is to be shared
        return traits(cell).is_exact and traits(cell).can_fork
    if mode == "grid":  # it asks for requests of its own, longer than those of the schedule
        is_sized = cell.max_model_len or cell.num_gpu_blocks_override
        return not (is_sized or traits(cell).needs_rehearsal or cell.num_scheduler_steps > 1)
    return True


def beside_baseline(
    cells: Sequence[Cell], baselines: Sequence[int], can_take_turns: Callable[[Cell], bool]
) -> list[list[Cell]]:
    """Rotations of a few cells, each with a copy of its group's baseline; none where one cannot, or
    where turns of equally many steps would not be equal turns.

    What slows the machine for a moment then slows both sides of each ratio.
    """
    takes_turns = steps_alike(cells) and all(map(can_take_turns, cells))
    if len(cells) == len(baselines) or not takes_turns:
        return []
    group_of = groups(cells)
    rotations = []
    for group, index in enumerate(baselines):
        baseline = cells[index]
        others = [
            cell
            for cell, its in zip(cells, group_of, strict=True)
            if its == group and cell != baseline
        ]
        parts = [others[n : n + _BESIDE] for n in range(0, len(others), _BESIDE)] or [[]]
        for number, part in enumerate(parts):
            # Cells of a run against itself are copies already, with lower numbers.
            copy = len(cells) + number if number else baseline.copy
            rotations.append([msgspec.structs.replace(baseline, copy=copy), *part])
    return rotations


def counting_modes(cells: Iterable[Cell], modes: Sequence[Mode]) -> list[Mode]:
    """Of ``modes`` those that are worth a trial: all where counts repeat to the digit.

    Where they do not, what a step keeps alive is still nearly exact, and so is what crosses; and
    what requests are given is the same.
    """
    if all(traits(cell).is_exact for cell in cells):
        return list(modes)
    return [mode for mode in modes if mode in ("long_run", "tracked", "outputs", *CROSSING)]


def counting_plan(
    name: str,
    cells: list[Cell],
    modes: Sequence[Mode],
    schedules: dict[str, str],
    seed: int,
    trace_every: int = 0,
    lines_of: Sequence[QualifiedName] = (),
) -> Plan:
    """One trial a cell in each of the modes, which count, and none that is timed."""
    return Plan(
        name=name,
        cells=cells,
        schedules=schedules,
        baselines=[0],
        decide=default_decider(cells)[:1],
        rounds=0,
        seed=seed,
        tolerance=0.0,
        extra_modes=list(modes),
        trace_every=trace_every,
        lines_of=list(lines_of),
    )


def without_collector(cell: Cell) -> Cell:
    """The cell that stands for all that differ only in collector and heap."""
    return msgspec.structs.replace(cell, gc="disabled", heap_objects=0)


def stands_for(cell: Cell, mode: str) -> Cell:
    """The cell whose trial in a mode that counts tells of this one."""
    if mode == "long_run":
        return msgspec.structs.replace(cell, device="null", copy=0)
    return cell if mode in COLLECTING else without_collector(cell)


def has_long_run(on_null: Cell) -> bool:
    """Whether full passes can be counted: the collector runs by itself, in the only thread."""
    policy = parse_policy(on_null.gc).for_role("engine")
    return collects_by_itself(policy) and traits(on_null).is_exact


def counting_shared(trial: Trial) -> Hashable:
    """Of whose interpreter a trial that counts can take a fork, in which it builds its engine.

    Where an engine cannot be built in one, of whose engine, once it stands: one for all modes that
    count. None where it needs an interpreter of its own, for it is timed, has threads and
    processes, or does not outlive a fork.
    """
    cell = trial.cell
    if trial.mode == "timing" or not (traits(cell).is_exact and traits(cell).outlives_fork):
        return None
    under = MODES[trial.mode].under
    if traits(cell).can_fork:
        return launched(cell), under
    is_larger = trial.mode == "grid"
    schedule = trial.schedule_path, trial.schedule_sha256
    return is_larger, without_collector(cell), *schedule, under


def heap_shared(trial: Trial) -> tuple[str | int, ...] | None:
    """Of whose interpreter, once it has imported and built a heap, a trial can take a fork.

    None where it needs one of its own, for it takes no turns or its engine comes before the heap.
    """
    if not trial.slice_steps or not traits(trial.cell).can_fork:
        return None
    return (*launched(trial.cell), trial.seed)


def timing_round(plan: Plan, number: int) -> Iterator[Turn]:
    """Every rotation once; the seed and the round decide the order and the counters' phases.

    From round to round the window opens a golden section of the way from one full pass to the next
    later, so that the windows of any number of rounds are spread evenly over that way.
    """
    rng = np.random.default_rng([plan.seed, number])
    seed = int(rng.integers(2**32))
    gc_cycle = (np.random.default_rng(plan.seed).random() + number * _GOLDEN) % 1.0
    place = 0
    for rotation in rng.permutation(len(plan.timed)).tolist():
        cells = plan.timed[rotation]
        for index in rng.permutation(len(cells)).tolist():
            yield Turn(number, place, cells[index], "timing", seed, 0, rotation, gc_cycle)
            place += 1


def default_decider(cells: list[Cell]) -> list[str]:
    """What decides in each group: without a device host time per step, where a step of each cell
    is the same piece of work; else throughput.
    """
    alike = steps_alike(cells)
    metric = {
        group: "host_time_per_step" if cell.device == "null" and alike else "request_throughput"
        for group, cell in zip(groups(cells), cells, strict=True)
    }
    return [metric[group] for group in sorted(metric)]
