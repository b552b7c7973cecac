"""Runs many small trials in this process and prints what it holds after each round of them.

    python many_trials.py ROUNDS FOLDER

A round is a trial of every kind of process: alone, with a worker behind shared memory, with an
output process, with a sender, three in turns, and one whose process is killed.
"""

import gc
import json
import os
import signal
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil
from processes import leave_others_memory, unused_segments
from small import CELL, TRIAL_SECONDS, schedule, trial

from harness.axes import Cell
from harness.experiment.local_executor import LocalExecutor
from harness.experiment.trial_process import TrialInterpreter
from harness.trial.spec import Trial, TrialBatch, TrialFailure, TrialResult


class Held(NamedTuple):
    """What a process has; ``segments``: of shared memory that nobody uses, ``files``: temporary."""

    descriptors: int
    resident_bytes: int
    children: int
    segments: int
    files: int


def trials(folder: Path) -> list[Trial]:
    """One of each kind."""

    def of(changes: dict[str, object], **arrivals: object) -> Trial:
        cell = Cell(**{each: getattr(CELL, each) for each in CELL.__struct_fields__} | changes)
        return trial(schedule([4, 4], **arrivals), folder, cell)

    return [
        of({}),
        of({"worker": "process", "wire": "columns+shared-memory"}),
        of({"output_processing": "process"}),
        of({}, arrival_seconds=[0.0, 0.001]),
    ]


def run_round(executor: LocalExecutor, round_: list[Trial]) -> None:
    """Run them, two at a time, and one that does not come to its end."""
    for begin in range(0, len(round_), 2):
        for outcome in executor.run(round_[begin : begin + 2]):
            assert isinstance(outcome, TrialResult), outcome
    in_turns = [msgspec.structs.replace(round_[0], slice_steps=2)] * 3
    for outcome in executor.run(in_turns):
        assert isinstance(outcome, TrialResult), outcome
    with TrialInterpreter(TrialBatch(trials=round_[:1]), TRIAL_SECONDS) as interpreter:
        (process,) = interpreter.trials
        process.wait_until_ready()
        os.kill(process.pid, signal.SIGKILL)
        assert isinstance(process.measure(), TrialFailure)


def held(temporary: Path) -> Held:
    """What this process has now."""
    gc.collect()
    me = psutil.Process()
    return Held(
        me.num_fds(),
        me.memory_info().rss,
        len(me.children(recursive=True)),
        len(unused_segments()),
        len(list(temporary.iterdir())),
    )


def main(rounds: int, folder: Path) -> None:
    """Print a list, a round each."""
    leave_others_memory()
    temporary = folder / "tmp"
    temporary.mkdir()
    os.environ["TMPDIR"] = str(temporary)
    asked = trials(folder)
    executor = LocalExecutor(TRIAL_SECONDS)
    found = []
    for _ in range(rounds):
        run_round(executor, asked)
        found.append(held(temporary))
    print(json.dumps([each._asdict() for each in found]))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
