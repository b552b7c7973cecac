"""Runs trials in fresh interpreters: prepared side by side, measured one at a time.

Importing torch and building a heap take longer than the measurement. So the interpreters of a
batch get ready together and then wait; while one of them measures, nothing else runs.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from harness.axes import Cell
from harness.experiment.executor import Executor
from harness.experiment.grid import is_alone
from harness.experiment.plan import engine_shared
from harness.experiment.trial_process import TrialProcess
from harness.machine.describe import cores_usable
from harness.machine.interrupts import held_interrupts
from harness.trial.spec import Trial, TrialFailure, TrialResult

_PREPARED_AT_ONCE = 4
"""Of interpreters that take no turns, so many get ready side by side at most: each holds torch and
a heap. How many take turns the plan says."""


@dataclass(frozen=True, slots=True)
class LocalExecutor(Executor):
    """This machine. ``timeout_seconds`` holds for a preparation and for a measurement."""

    timeout_seconds: float

    def run(self, trials: Sequence[Trial]) -> Iterator[TrialResult | TrialFailure]:
        """Each trial's result, or why there is none, in order; afterwards no process is left.

        A time-out, a crash and a kill are answers like any other; Ctrl-C ends all trials and goes
        on up. Where none of the trials is timed they run side by side: a count does not mind. Those
        that can have an engine together run in forks of one interpreter.
        Trials with slices take turns, so that a machine that is slow for a moment is so for all.
        """
        are_counts = all(trial.mode != "timing" for trial in trials)
        alone = [[index] for index in range(len(trials))]
        groups = _by_engine(trials) if are_counts else alone
        at_once = max(1, cores_usable() // max(1, len(groups)))
        with ExitStack() as stack:
            with held_interrupts():  # between its start and its registration nobody would end it
                begun = []
                for group in groups:
                    first, *others = (trials[index] for index in group)
                    process = TrialProcess(first, self.timeout_seconds, others, at_once)
                    begun.append(stack.enter_context(process))
            for process in begun:
                process.wait_until_ready()
            if are_counts:
                for process in begun:
                    process.go()
            elif any(trial.slice_steps for trial in trials):
                _take_turns(begun)
            answers: dict[int, Iterator[TrialResult | TrialFailure]] = {}
            for process, group in zip(begun, groups, strict=True):
                answers |= dict.fromkeys(group, process.measure_each())
            for index in range(len(trials)):
                yield next(answers[index])

    def batch_size(self, cells: Iterable[Cell]) -> int:
        """Trials that get ready side by side: one where a cell takes all of its device."""
        return 1 if any(map(is_alone, cells)) else min(cores_usable(), _PREPARED_AT_ONCE)


def _by_engine(trials: Sequence[Trial]) -> list[list[int]]:
    """The numbers of the trials in their order, those together that can have an engine together."""
    groups: dict[object, list[int]] = {}
    for index, trial in enumerate(trials):
        shared = engine_shared(trial.cell, trial.mode)
        key = (shared, trial.schedule_path, trial.schedule_sha256) if shared else index
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def _take_turns(begun: Sequence[TrialProcess]) -> None:
    # On one core: another may be shared with a neighbour's machine, and slow for as long as he is.
    core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    for process in begun:
        process.pin(core)
    under_way = list(begun)
    while under_way:
        # Round and round, so that each finds its caches as cold: there and back the first of three
        # has two turns on end and then waits for four, and its place is worth 2 % of its time.
        under_way = [process for process in under_way if process.run_slice()]
