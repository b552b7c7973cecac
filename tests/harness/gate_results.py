"""Made-up answers of a gate, small enough to be read in a test."""

from collections.abc import Sequence
from typing import Any

import msgspec

from harness.axes import Cell, values
from harness.experiment.result import Comparison
from harness.machine.describe import Machine
from harness.metrics import METRICS
from harness.result.result import ReplayedWorkload
from harness.tracking.gate.exact_counts import overall
from harness.tracking.gate.result import (
    CauseOfChange,
    ExactChange,
    GateCell,
    GateResult,
    StallChange,
    TimingChange,
)
from harness.tracking.gate.trees import Tree
from harness.tracking.gate.words import conclude_gate

LISTS, ARRAYS = "list_of_lists · per_request", "flat_arrays · columnar"
EXACT = {
    "gc_collections_per_1000_steps": 1_062.5,
    "tracked_peak_per_step": 2_061.0,
    "tracked_survivors_per_step": 1.0,
    "tracked_allocations_per_step": 3_102.0,
    "bytecodes_per_request_step": 118.25,
    "handoff_bytes": 98_304.0,
    "bytecodes_per_add": 391.0,
    "bytecodes_per_finish": 1_652.25,
    "bytecodes_per_abort": 400.0,
    "allocations_per_add": 7.0,
}


def exact(**after: float) -> list[ExactChange]:
    """The metrics of `EXACT`, and what they and others are in HEAD where that is another value."""
    return [
        ExactChange(
            metric=name,
            unit=METRICS[name].unit,
            direction=METRICS[name].direction,
            before=(before := EXACT.get(name, 100.0)),
            after=(now := after.get(name, before)),
            verdict="same"
            if not METRICS[name].differs(before, now)
            else "better"
            if (now > before) == (METRICS[name].direction == "higher")
            else "worse",
        )
        for name in EXACT | after
    ]


def _comparison(change: float, half_width: float, rounds: int, verdict: str = "") -> Comparison:
    low, high = change - half_width, change + half_width
    within = "same" if low >= -0.03 and high <= 0.03 else "inconclusive"
    decided = ("worse" if change > 0 else "better") if abs(change) > 2 * half_width else within
    return Comparison(
        metric="host_time_per_step",
        baseline="base",
        candidate="head",
        ratio=1 + change,
        ci95=(1 + low, 1 + high),
        verdict=verdict or (within if within == "same" else decided),
        p_adjusted=0.001,
        mde=2 * half_width,
        rounds=rounds,
    )


def timing(
    change: float,
    control: float,
    cause: str,
    half_width: float = 0.006,
    rounds: int = 9,
    stalls: float = 0.0,
) -> TimingChange:
    """Host time with and without the collector, as relative changes; four fifths are the code.

    ``stalls``: what they add to the mean alone.
    """
    attribution = CauseOfChange(
        control=_comparison(control, half_width, rounds),
        code=_comparison(0.8 * control, half_width, rounds),
        collector=_comparison(change + stalls - 0.8 * control, half_width, rounds),
        cause=cause,
    )
    return TimingChange(
        before=870e-6,
        after=870e-6 * (1 + change),
        steady=_comparison(change, half_width, rounds),
        mean_before=910e-6,
        mean_after=910e-6 * (1 + change + stalls),
        mean=_comparison(change + stalls, half_width, rounds),
        stalls=_stalls(stalls, half_width, rounds),
        attribution=attribution if cause else None,
    )


def _stalls(share: float, half_width: float, rounds: int) -> StallChange:
    is_sure = abs(share) > 2 * half_width
    found = ("worse" if share > 0 else "better") if is_sure else "same"
    return StallChange(
        before=2,
        after=20 if is_sure else 3,
        longest_before=0.0011,
        longest_after=0.0057,
        steps=506 * rounds,
        rounds=rounds,
        ratio=1 + share,
        ci95=(1 + share - half_width, 1 + share + half_width),
        p_adjusted=0.0003 if is_sure else 1.0,
        verdict="inconclusive" if found == "same" and half_width > 0.015 else found,
    )


def cell(
    name: str,
    verdict: str,
    changes: Sequence[ExactChange] = (),
    timed: TimingChange | None = None,
    **figures: float,
) -> GateCell:
    """A cell of a batch of 1,024."""
    made = Cell(workload="opt125m-48-500", device="null", representation="list_of_lists")
    return GateCell(
        id=name,
        axes={axis: value for axis, value in values(made).items() if axis != "release"},
        exact=list(changes),
        timing=timed,
        verdict=verdict,
        command=f"gcbench gate main --representation {name.split(' ', maxsplit=1)[0]}",
        figures=figures,
    )


def result(cells: Sequence[GateCell] = (), **changes: Any) -> GateResult:
    """All of it, with the verdict and the sentences that belong to the cells."""
    made = GateResult(
        name="2026-11-21T0314-gate",
        base=Tree(asked="main", sha="0123456789" * 4, subject="Name a local", folder="/out/base"),
        head=Tree(
            asked="HEAD",
            sha="abcdef0123" * 4,
            subject="Keep a note of each request",
            folder="/out/head",
        ),
        machine=Machine(
            cpu_model="Made-up CPU",
            cores_usable=2,
            memory_bytes=25276502016,
            kernel="Linux 6.1",
            virtualization="virtual machine",
        ),
        workloads=[ReplayedWorkload(name="opt125m-48-500")],
        tolerance=0.03,
        verdict=overall(cells, changes.get("missing", [])),
        cells=list(cells),
        missing=[],
        failures=[],
        conclusions=conclude_gate(cells),
        notes=[],
        command="gcbench gate main",
    )
    return msgspec.structs.replace(made, **changes)
