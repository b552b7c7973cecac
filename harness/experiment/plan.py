"""What an experiment will run: cells, rounds, and the trials in the order of their turn."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from harness.axes import Cell
from harness.experiment.grid import groups, is_exact
from harness.trial.spec import Mode

EXACT_ROUND = 0
"""Round number under which trials that are not timings are kept; timing rounds count from 1."""

COLLECTING: tuple[Mode, ...] = ("counts", "probed")
"""Modes that count under the cell's own collector; the others switch it off."""

BRIEF: tuple[Mode, ...] = ("tracked", "memory", "opcodes")
"""Modes that watch some steps of a full batch; the others run to the end."""

_FEW_STEPS = 96
"""Steps of a trial that only counts objects or bytecodes in a full batch."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment as asked for; two with equal plans can be resumed as one.

    ``schedules`` maps a workload to the hash of its schedule. A group has an entry in
    ``baselines``, the index of its baseline, and in ``decide``, the metric that decides.
    ``repeats`` is how many trials count collections in the first of the cells that differ in
    the collector alone; one counts in each other. ``together`` consecutive cells are one block,
    which goes through a round as one, slice by slice of ``slice_steps`` steps.
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
    together: int = 1
    slice_steps: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """A trial's turn: its round, its place in the round, its cell, mode and seed."""

    round: int
    place: int
    cell: Cell
    mode: Mode
    seed: int
    max_steps: int = 0


def exact_turns(plan: Plan) -> list[Turn]:
    """Trials that count rather than time, one for each answer that cells do not share.

    Where the first cell counts alike again, so do those beside it: it alone is repeated.
    """
    turns: dict[tuple[Mode, Cell, int], Turn] = {}
    first: dict[Cell, Cell] = {}
    for mode in plan.extra_modes:
        for cell in plan.cells:
            collects = mode in COLLECTING
            counted = cell if collects else without_collector(cell)
            max_steps = _FEW_STEPS if mode in BRIEF else 0
            is_first = first.setdefault(without_collector(cell), cell) == cell
            for again in range(plan.repeats if mode == "counts" and is_first else 1):
                turn = Turn(EXACT_ROUND, len(turns), counted, mode, plan.seed, max_steps)
                turns.setdefault((mode, counted, again), turn)
    return list(turns.values())


def counting_modes(cells: Iterable[Cell], modes: Sequence[Mode]) -> list[Mode]:
    """Of ``modes`` those that are worth a trial: all where counts repeat to the digit.

    Where they do not, what a step keeps alive is still nearly exact.
    """
    return list(modes) if all(map(is_exact, cells)) else [m for m in modes if m == "tracked"]


def without_collector(cell: Cell) -> Cell:
    """The cell that stands for all that differ only in collector and heap."""
    return msgspec.structs.replace(cell, gc="disabled", heap_objects=0)


def timing_round(plan: Plan, number: int) -> Iterator[Turn]:
    """Every cell once, in an order and with counter phases that the seed and the round decide."""
    rng = np.random.default_rng([plan.seed, number])
    seed = int(rng.integers(2**32))
    blocks = np.arange(len(plan.cells)).reshape(-1, plan.together)
    order = [rng.permutation(block) for block in rng.permutation(blocks)]
    for place, index in enumerate(np.concatenate(order).tolist()):
        yield Turn(number, place, plan.cells[index], "timing", seed)


def default_decider(cells: list[Cell]) -> list[str]:
    """What decides in each group: host time per step without a device, else throughput."""
    metric = {
        group: "host_time_per_step" if cell.device == "null" else "request_throughput"
        for group, cell in zip(groups(cells), cells, strict=True)
    }
    return [metric[group] for group in sorted(metric)]
