"""Do collection counts repeat to the digit, and does the probe change them?

Each shape and delivery of the built-in engine on the null device, in N fresh interpreters under
exact conditions, and once more with the probe watching.

    python -m benchmarks.exact_counts --interpreters 20
    python -m benchmarks.exact_counts --python /usr/bin/python3.12 --interpreters 20

The last line of output is one JSON document.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from engines.builtin.registries import DELIVERIES, REPRESENTATIONS
from harness.axes import Cell
from harness.experiment.grid import cross
from harness.experiment.local_executor import LocalExecutor
from harness.machine.describe import cores_usable
from harness.trial.spec import Mode, Trial, TrialFailure
from workloads import catalog

WORKLOAD = "opt125m-48-200"


def collections(trials: list[Trial]) -> list[tuple[int, int, int]]:
    """Collections of each trial by generation."""
    counts = []
    for start in range(0, len(trials), cores_usable()):
        for outcome in LocalExecutor(300).run(trials[start : start + cores_usable()]):
            if isinstance(outcome, TrialFailure):
                sys.exit(f"no result: {outcome.reason}")
            counts.append(outcome.processes[0].collections)
    return counts


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--interpreters", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--python", default="")
    options = parser.parse_args()
    workload = catalog.load_workload(WORKLOAD)
    schedule = workload.realise(0)
    axes = {
        "workload": [workload.name],
        "engine": ["builtin"],
        "device": ["null"],
        "representation": REPRESENTATIONS.names(),
        "delivery": DELIVERIES.names(),
        "batch_size": [options.batch_size],
        "python": [options.python],
    }
    cells = cross(axes, {workload.name: schedule}, {workload.name: workload.model}).cells
    report = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schedule.npz"
        schedule.save(path)

        def trial(cell: Cell, mode: Mode) -> Trial:
            return Trial(
                cell=cell, schedule_path=str(path), schedule_sha256=schedule.sha256, mode=mode
            )

        print(
            f"{'representation':16}{'delivery':14}{'gen0/gen1/gen2':>18}{'equal':>8}{'probe':>18}"
        )
        for cell in cells:
            counts = collections([trial(cell, "counts")] * options.interpreters)
            (probed,) = collections([trial(cell, "probed")])
            equal = sum(count == counts[0] for count in counts)
            words = ["/".join(map(str, triple)) for triple in (counts[0], probed)]
            print(
                f"{cell.representation:16}{cell.delivery:14}{words[0]:>18}"
                f"{f'{equal}/{len(counts)}':>8}{words[1]:>18}",
                flush=True,
            )
            report.append(
                {
                    "representation": cell.representation,
                    "delivery": cell.delivery,
                    "counts": sorted(set(counts)),
                    "equal": equal,
                    "probed": probed,
                }
            )
    print(json.dumps({"batch_size": options.batch_size, "python": options.python, "cells": report}))


if __name__ == "__main__":
    main()
