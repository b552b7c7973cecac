"""Made-up summaries of vLLM's releases: exact counts and timed samples, as many as a test asks."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.collector.result import GcState, ProcessResult
from harness.experiment.result import CellResult, ExperimentResult, MetricSamples
from harness.machine.describe import Machine
from harness.result.result import ReplayedWorkload

COUNTS = (
    "gc_collections_gen0",
    "gc_collections_gen1",
    "gc_collections_gen2",
    "tracked_peak_per_step",
    "tracked_survivors_per_step",
    "tracked_heap",
    "bytecodes_per_request_step",
)
TIMINGS = {
    "gc_pause_share": "share of wall",
    "gc_pause_max": "s",
    "host_time_per_request_step": "s",
}


def exact(value: float) -> MetricSamples:
    return MetricSamples(
        unit="collections", direction="lower", kind="exact", median=value, samples=[value]
    )


def timed(samples: Sequence[float | None], unit: str = "s") -> MetricSamples:
    known = sorted(value for value in samples if value is not None)
    return MetricSamples(
        unit=unit,
        direction="lower",
        kind="timing",
        median=known[len(known) // 2] if known else None,
        samples=list(samples),
    )


def cell(release: str, young: float, gc: str = "as_is", **axes: Any) -> CellResult:
    """A cell whose counts all follow from ``young``, with three timed samples."""
    state = GcState(enabled=True, thresholds=(700, 10, 10), freeze_count=900, tracked_objects=1000)
    process = ProcessResult(
        role="engine",
        policy=gc,
        state=state,
        collections=(0, 0, 0),
        collected=(0, 0, 0),
        pause_seconds=(0.0, 0.0, 0.0),
        max_pause_seconds=0.0,
        full_pass_seconds=0.0,
    )
    metrics = {name: exact(young // 10**place) for place, name in enumerate(COUNTS)}
    metrics |= {name: timed([0.02, 0.01, 0.03], unit) for name, unit in TIMINGS.items()}
    return CellResult(
        id=f"{release} · {gc}",
        group=0,
        samples=3,
        metrics=metrics,
        processes=[process],
        axes={
            "workload": "small",
            "engine": "vllm-hostpath",
            "release": release,
            "device": "null",
            "gc": gc,
            "batch_size": 8,
            **axes,
        },
        tokens_sha256=[],
    )


def result(
    cells: Sequence[CellResult], notes: Sequence[str] = (), **fields: Any
) -> ExperimentResult:
    made: dict[str, Any] = {
        "name": "made-up",
        "machine": Machine(cpu_model="AMD EPYC"),
        "workloads": [ReplayedWorkload(name="small", hash="abc", num_requests=8)],
        "decide": [],
        "tolerance": 0.02,
        "cells": list(cells),
        "comparisons": [],
        "failures": [],
        "notes": list(notes),
        "command": "gcbench releases vllm all",
        "code_commits": [],
    }
    return ExperimentResult(**(made | fields))


def along(
    young: Mapping[str, float], policies: Sequence[str] = ("as_is", "default"), **fields: Any
) -> ExperimentResult:
    """A cell for each release and policy, in the order given."""
    return result(
        [
            cell(release, count - place, gc)
            for release, count in young.items()
            for place, gc in enumerate(policies)
        ],
        **fields,
    )
