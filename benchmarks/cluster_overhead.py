"""What does Ray add to a block, and how many trials a second can the bookkeeping take?

A block of two cells on device null, with the trial that warms the machine up, timed by this
machine's executor and by that of a cluster of this machine alone, in turn: the ratio of their
times, paired, with its interval. Before it, how long the cluster takes from nothing to its first
node; after it, trials of nothing, which a node answers at once: how many a second are asked,
carried and stored.

    python -m benchmarks.cluster_overhead [--repeats 14] [--trials 1000]

The last line of output is one JSON document. The machine must be quiet.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from harness import format as fmt
from harness.axes import Cell
from harness.experiment.executor import Executor
from harness.experiment.grid import baselines
from harness.experiment.local_executor import LocalExecutor
from harness.experiment.plan import Plan
from harness.experiment.ray.connection import connected
from harness.experiment.ray.executor import RayExecutor
from harness.experiment.ray.of_our_own import LOCAL
from harness.experiment.run import Runner
from harness.experiment.store import read_trial
from harness.statistics.paired_ratio import paired_ratio
from harness.trial.spec import TrialFailure
from workloads.recipe.lengths import parse_lengths
from workloads.schedule import Schedule
from workloads.workload import Workload

TIMEOUT_SECONDS = 600.0
CELLS = [
    Cell(
        workload="decode",
        device="null",
        representation="list_of_lists",
        batch_size=256,
        heap_objects=100_000,
        gc=gc,
    )
    for gc in ("default", "disabled")
]


def schedule() -> Schedule:
    """256 requests of 300 tokens."""
    lengths = parse_lengths("48"), parse_lengths("300")
    workload = Workload(
        name="decode", num_requests=256, prompt_lens=lengths[0], output_lens=lengths[1]
    )
    return workload.realise(0)


def run(executor: Executor, of: Schedule, folder: Path, name: str, rounds: int) -> float:
    """Seconds that an experiment of so many blocks takes, from its plan to its last file."""
    runner = Runner(folder, {CELLS[0].workload: of}, executor)
    plan = Plan(
        name=name,
        cells=CELLS,
        schedules=runner.schedule_hashes,
        baselines=baselines(CELLS, {}),
        decide=["host_time_per_step"],
        rounds=rounds,
        seed=0,
        tolerance=0.02,
        extra_modes=[],
    )
    began = time.perf_counter()
    ran = runner.run(plan)
    seconds = time.perf_counter() - began
    if failed := [each for each in ran.outcomes.values() if isinstance(each, TrialFailure)]:
        raise SystemExit(f"{name}: {failed[0].reason}")
    return seconds


def of_nothing(answer: bytes) -> Callable[[], Callable[..., Iterator[Any]]]:
    """A node's program that answers each trial with one and the same result; see `run_there`."""

    def program() -> Callable[..., Iterator[Any]]:
        def run(asked: bytes, names: list[str], *files: bytes) -> Iterator[Any]:
            import json

            yield -1, 0, False, b"[]", b""
            whole = json.loads(answer)
            for nth, trial in enumerate(json.loads(asked)["block"]["trials"]):
                whole |= {"cell": trial["cell"], "seed": trial["seed"]}
                yield nth, 0, True, json.dumps(whole).encode(), b""

        return run

    return program


def one_answer(of: Schedule, folder: Path) -> bytes:
    """What a real trial answers."""
    run(LocalExecutor(TIMEOUT_SECONDS), of, folder, "one", 1)
    _, outcome = read_trial(next((folder / "one" / "trials").glob("*.json")))
    return msgspec.json.encode(outcome)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the three figures, and them again as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=14, help="blocks on each side")
    parser.add_argument("--trials", type=int, default=1000, help="trials of nothing")
    asked = parser.parse_args(arguments)
    of = schedule()
    with TemporaryDirectory() as name:
        folder = Path(name)
        answer = one_answer(of, folder)
        began = time.perf_counter()
        with connected(LOCAL) as cluster:
            start_seconds = time.perf_counter() - began
            sides: dict[str, Callable[[], Executor]] = {
                "local": lambda: LocalExecutor(TIMEOUT_SECONDS),
                "Ray": lambda: RayExecutor(cluster, TIMEOUT_SECONDS),  # anew: to warm up as well
            }
            seconds: dict[str, list[float]] = {side: [] for side in sides}
            run(sides["Ray"](), of, folder, "first", 1)  # its worker starts with it
            for repeat in range(asked.repeats):
                for side in sorted(sides, reverse=bool(repeat % 2)):
                    took = run(sides[side](), of, folder, f"{side}-{repeat}", 1)
                    seconds[side].append(took)
            nothing = RayExecutor(cluster, TIMEOUT_SECONDS, program=of_nothing(answer))
            rounds = asked.trials // len(CELLS)
            bookkeeping = rounds * len(CELLS) / run(nothing, of, folder, "nothing", rounds)
    found = paired_ratio(seconds["local"], seconds["Ray"])
    low, high = (fmt.percent(end - 1, signed=True) for end in found.ci95)
    here, there = (fmt.seconds(median(seconds[side])) for side in sides)
    change = fmt.percent(found.ratio - 1, signed=True)
    print(f"a cluster of this machine, until its node can measure: {fmt.seconds(start_seconds)}")
    print(f"a block: {here} here, {there} on Ray; {change} ({low} to {high}, {found.rounds} pairs)")
    print(f"trials of nothing: {fmt.number(bookkeeping)} a second")
    print(
        json.dumps(
            {
                "start_seconds": start_seconds,
                "block_seconds": seconds,
                "ratio": found.ratio,
                "ci95": found.ci95,
                "repeats": found.rounds,
                "trials_per_second": bookkeeping,
            }
        )
    )


if __name__ == "__main__":
    main()
