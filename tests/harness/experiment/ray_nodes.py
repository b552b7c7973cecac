"""Ray nodes on this machine whose trials are made up: real tasks, real deaths, no interpreters.

    python ray_nodes.py ADDRESS FOLDER NAME ROUNDS SECONDS

runs an experiment on the cluster at an address, as a driver that can be killed.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from small import CELL, plan, schedule

from harness.experiment.executor import Executor
from harness.experiment.plan import Plan
from harness.experiment.ray.connection import connected
from harness.experiment.ray.error import ClusterError
from harness.experiment.ray.executor import RayExecutor
from harness.experiment.run import PlanRun, Runner

SCHEDULE = schedule([12] * 8)
CELLS = [msgspec.structs.replace(CELL, gc=gc) for gc in ("default", "disabled")]
TIMEOUT_SECONDS = 600.0
GONE_SECONDS = 4.0
"""Until a driver believes that its cluster is gone."""


def made_up(
    seconds: float = 0.0, effect: float = 0.0, speeds: Mapping[str, float] = {}
) -> Callable[[], Callable[..., Iterator[Any]]]:
    """A node's program whose trials take ``seconds`` and answer with noise of 1 %.

    ``effect``: of the second cell; ``speeds``: by node id. It is sent whole: see `run_there`.
    """
    speeds = dict(speeds)

    def program() -> Callable[..., Iterator[Any]]:
        def run(asked: bytes, names: list[str], *files: bytes) -> Iterator[Any]:
            import random
            import sys
            import time

            from gcbench.code_root import code_root

            sys.path.insert(0, str(code_root()))
            import msgspec
            import ray

            from harness.collector.result import GcState, ProcessResult
            from harness.experiment.ray.on_node import BEGUN, AskedBlock
            from harness.machine.describe import describe
            from harness.trial.spec import TrialResult

            block = msgspec.json.decode(asked, type=AskedBlock).block
            state = GcState(
                enabled=True, thresholds=(700, 10, 10), freeze_count=0, tracked_objects=1000
            )
            process = ProcessResult(
                role="engine",
                policy="default",
                state=state,
                collections=(7, 1, 0),
                collected=(0, 0, 0),
                pause_seconds=(0.0, 0.0, 0.0),
                max_pause_seconds=0.0,
                full_pass_seconds=0.5,
            )
            factor = speeds.get(ray.get_runtime_context().get_node_id(), 1.0)
            yield BEGUN, 0, False, b"[]", b""
            for nth, trial in enumerate(block.trials):
                time.sleep(seconds * factor)
                cell = trial.cell
                noise = random.Random(f"{cell.gc} {cell.copy} {trial.seed}").gauss(0, 0.01)
                took = factor * (1 + noise) * (1 + effect * (cell.gc != "default"))
                result = TrialResult(
                    cell=cell,
                    mode=trial.mode,
                    seed=trial.seed,
                    processes=[process],
                    metrics={"host_time_per_step": took},
                    tokens_sha256="same",
                    finish_sha256="",
                    interpreter="",
                    code_root="",
                    code_commit="",
                    wall_seconds=0.0,
                    machine=describe(),
                )
                yield nth, 0, True, msgspec.json.encode(result), b""

        return run

    return program


def run(
    executor: Executor, folder: Path, name: str, rounds: int, **changes: Any
) -> tuple[Plan, PlanRun]:
    """An experiment of two cells, begun or gone on with."""
    runner = Runner(folder, {SCHEDULE.name: SCHEDULE}, executor)
    fields = {"name": name, "schedules": runner.schedule_hashes, "extra_modes": ["counts"]}
    of = plan(CELLS, rounds=rounds, **(fields | changes))
    return of, runner.run(of)


def main(address: str, folder: str, name: str, rounds: str, seconds: str) -> None:
    """Status 3 where the cluster goes away."""
    try:
        with connected(address) as cluster:
            cluster.gone_seconds = GONE_SECONDS
            nodes = RayExecutor(cluster, TIMEOUT_SECONDS, program=made_up(float(seconds)))
            run(nodes, Path(folder), name, int(rounds))
    except ClusterError as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(3)


if __name__ == "__main__":
    main(*sys.argv[1:])
