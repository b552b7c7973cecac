"""What a gate runs: each cell under two commits, with the collector and without."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from harness.axes import Cell
from harness.experiment.grid import traits
from harness.experiment.plan import Plan
from harness.trial.output_hashes import QualifiedName
from harness.trial.spec import Mode

DECIDES = "host_time_per_step"
TURN_STEPS = 25
"""Of base and head: a turn's excess is judged by itself, so it is to hold a stall whole."""

EXACT_MODES: list[Mode] = ["counts", "tracked", "memory", "leaks", "opcodes", "grid", "outputs"]
INSTRUCTIONS: Mode = "instructions"


class GatePair(NamedTuple):
    """A cell of the gate under both commits; the controls have the collector disabled."""

    id: str
    base: Cell
    head: Cell
    base_control: Cell
    head_control: Cell


def pair(name: str, cell: Cell, base: str, head: str, number: int) -> GatePair:
    """The four cells that tell what became of ``cell`` between two trees."""
    ours, theirs = (msgspec.structs.replace(cell, release=folder) for folder in (base, head))
    # Cells that differ in policy alone have equal controls, which ``copy`` keeps apart.
    controls = (msgspec.structs.replace(c, gc="disabled", copy=number) for c in (ours, theirs))
    return GatePair(name, ours, theirs, *controls)


def exact_plan(
    name: str,
    pairs: Sequence[GatePair],
    schedules: dict[str, str],
    seed: int,
    *,
    lines_of: Sequence[QualifiedName] = (),
    with_instructions: bool = False,
) -> Plan:
    """Counts what repeats to the digit, collections twice, to see that they do; bytecodes from the
    first step to the last, for what a change costs may begin late or come now and then.
    ``lines_of``: functions of which is told whether they ran.
    """
    return Plan(
        name=f"{name}-exact",
        cells=[cell for each in pairs for cell in (each.base, each.head)],
        schedules=schedules,
        baselines=[0],
        decide=[DECIDES],
        rounds=0,
        seed=seed,
        tolerance=0.0,
        extra_modes=[*EXACT_MODES, INSTRUCTIONS] if with_instructions else EXACT_MODES,
        repeats=2,
        trace_every=traits(pairs[0].base).trace_every if pairs else 0,
        lines_of=list(lines_of),
    )


def timing_plan(
    name: str,
    pairs: Sequence[GatePair],
    *,
    schedules: dict[str, str],
    seed: int,
    rounds: int,
    tolerance: float,
    with_controls: bool = False,
) -> Plan:
    """Times base beside head, or both beside their controls."""
    rotations = [list(each[1:] if with_controls else each[1:3]) for each in pairs]
    sliced = all(traits(each.base).can_pause for each in pairs)
    return Plan(
        name=f"{name}-{'cause' if with_controls else 'timing'}",
        cells=[cell for rotation in rotations for cell in rotation],
        schedules=schedules,
        baselines=[0],
        decide=[DECIDES],
        rounds=rounds,
        seed=seed,
        tolerance=tolerance,
        extra_modes=[],
        rotations=rotations,
        slice_steps=TURN_STEPS if sliced else 0,
    )
