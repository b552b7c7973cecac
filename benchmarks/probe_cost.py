"""What does the probe cost, as a share of a step?

The cost of the probe's pair of callbacks on an empty collection, with and without it in turn,
times the collections that a step of `list_of_lists` at batch 1,024 makes, over its host time.

    python -m benchmarks.probe_cost

The last line of output is one JSON document.
"""

import gc
import json
import statistics
import tempfile
import time
from pathlib import Path

from harness.axes import Cell
from harness.collector.probe import Probe
from harness.experiment.local_executor import LocalExecutor
from harness.trial.spec import Trial, TrialResult
from workloads import catalog

PASSES = 5_000
PAIRS = 21


def seconds_per_pass() -> float:
    """Seconds of one collection of nothing."""
    began = time.perf_counter()
    for _ in range(PASSES):
        gc.collect(0)
    return (time.perf_counter() - began) / PASSES


def probe_seconds() -> float:
    """Median over interleaved pairs of what the probe adds to one collection."""
    gc.collect()
    gc.freeze()
    differences = []
    for _ in range(PAIRS):
        alone = seconds_per_pass()
        with Probe(PASSES):
            differences.append(seconds_per_pass() - alone)
    gc.unfreeze()
    return statistics.median(differences)


def one_trial() -> TrialResult:
    """A timing trial of the baseline on the null device, where a step is shortest."""
    workload = catalog.load_workload("opt125m-48-200")
    schedule = workload.realise(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schedule.npz"
        schedule.save(path)
        cell = Cell(workload=workload.name, device="null", representation="list_of_lists")
        trial = Trial(cell=cell, schedule_path=str(path), schedule_sha256=schedule.sha256)
        executor = LocalExecutor(300)
        outcomes = [*executor.run([trial]), *executor.run([trial])]  # the first one warms up
    assert isinstance(outcomes[-1], TrialResult), outcomes[-1].reason
    return outcomes[-1]


def main() -> None:
    """Measure and print."""
    per_collection = probe_seconds()
    metrics = one_trial().metrics
    step = metrics["host_time_per_step"] or 0.0
    per_step = (metrics["gc_collections_per_1000_steps"] or 0.0) / 1000
    share = per_collection * per_step / step
    print(
        f"probe: {per_collection * 1e9:.0f} ns a collection, {per_step:.2f} collections a step of"
    )
    print(f"{step * 1e6:.0f} µs on the null device: {share:.2%} of step time")
    print(json.dumps({"ns_per_collection": per_collection * 1e9, "share_of_step": share}))


if __name__ == "__main__":
    main()
