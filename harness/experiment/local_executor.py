"""Runs trials in fresh interpreters: prepared side by side, measured one at a time.

Importing and building a heap take longer than the measurement. So the interpreters of a batch get
ready together and then wait; while one of them measures, nothing else runs. Those of a
rotation that can are forks of one, which has imported and built. Those of a GPU get ready alone
until a trial of each cell has said how many of it the GPU's memory holds.
"""

import os
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial

import msgspec

from engines.protocol import FIT, Setting
from harness.axes import Cell
from harness.experiment.executor import Executor, TrialOutcome
from harness.experiment.grid import traits
from harness.experiment.plan import counting_shared, heap_shared
from harness.experiment.trial_process import TrialInterpreter, TrialProcess
from harness.machine.describe import cores_usable
from harness.machine.interrupts import held_interrupts
from harness.running.listener import Listener
from harness.trial.spec import Trial, TrialBatch, TrialResult

_PREPARED_AT_ONCE = 4
"""Of interpreters that take no turns, so many get ready side by side at most: each holds a
heap. How many take turns the plan says."""


@dataclass(slots=True)
class LocalExecutor(Executor):
    """This machine. ``timeout_seconds`` holds for a preparation and for a measurement."""

    timeout_seconds: float
    notes: list[str] = field(default_factory=list)
    _alone: dict[Cell, dict[str, Setting]] = field(default_factory=dict)
    """How a cell's engine runs with a GPU to itself."""

    def run(self, trials: Sequence[Trial]) -> Iterator[TrialOutcome]:
        """Each trial's result, or why there is none, in order; afterwards no process is left.

        A time-out, a crash and a kill are answers like any other; Ctrl-C ends all trials and goes
        on up. Where none of the trials is timed they run side by side: a count does not mind. Those
        that can have an interpreter together run in forks of it.
        Trials with slices take turns, so that a machine that is slow for a moment is so for all.
        """
        is_timed = any(trial.mode == "timing" for trial in trials)
        with ExitStack() as stack:
            begun = self._begin(trials, stack, is_timed=is_timed)
            if is_timed:
                for process in begun:
                    process.wait_until_ready()
                if any(trial.slice_steps for trial in trials):
                    _take_turns(begun)
            else:
                for process in begun:
                    process.go()
            for process in begun:
                yield self._as_alone(process.measure(), is_alone=len(begun) == 1)

    def batch_size(self, cells: Iterable[Cell]) -> int:
        """Trials that get ready side by side: of a GPU as many as it holds, whichever they are, and
        one as long as that is not known.
        """
        size = most = min(cores_usable(), _PREPARED_AT_ONCE)
        for cell in cells:
            if traits(cell).takes_gpu:
                fit = int(self._alone.get(cell, {}).get(FIT, 1))
                if fit < most and cell in self._alone:
                    self._tell(cell.workload, fit)
                size = min(size, fit)
        return size

    def _tell(self, workload: str, count: int) -> None:
        trials = "1 trial" if count == 1 else f"{count} trials"
        said = f"{trials} of {workload} at a time: the GPU's memory holds no more."
        if said not in self.notes:
            self.notes.append(said)

    def _as_alone(self, outcome: TrialOutcome, *, is_alone: bool) -> TrialOutcome:
        """The outcome, invalid where its engine runs otherwise beside others than alone."""
        if not (isinstance(outcome, TrialResult) and FIT in outcome.engine_state):
            return outcome
        if is_alone:
            self._alone.setdefault(outcome.cell, outcome.engine_state)
        state = self._alone.get(outcome.cell, outcome.engine_state)
        changed = [
            f"{name} is {value}, alone {state.get(name)}"
            for name, value in outcome.engine_state.items()
            if name != FIT and value != state.get(name)
        ]
        if not changed:
            return outcome
        why = f"beside others on the GPU it runs otherwise: {', '.join(changed)}"
        return msgspec.structs.replace(outcome, invalid=why)

    def _begin(
        self, trials: Sequence[Trial], stack: ExitStack, *, is_timed: bool
    ) -> list[TrialProcess]:
        """Start each one's interpreter, or the one of which it takes a fork."""
        listener = stack.enter_context(closing(Listener()))
        keys = [heap_shared(each) if is_timed else counting_shared(each) for each in trials]
        groups = _together(keys)
        found: dict[int, TrialProcess] = {}
        with held_interrupts():  # between its start and its registration nobody would end it
            for group in groups:
                asked = [trials[index] for index in group]
                at_once = -(-cores_usable() * len(group) // len(trials))
                interpreter = TrialInterpreter(
                    _asked(asked, keys[group[0]], at_once, is_timed=is_timed),
                    self.timeout_seconds,
                    listener,
                )
                found |= zip(group, stack.enter_context(interpreter).trials, strict=True)
        return [found[index] for index in range(len(trials))]


def _asked(trials: list[Trial], what: Hashable, at_once: int, *, is_timed: bool) -> TrialBatch:
    """What the interpreter of trials is asked that can share something; None: nothing."""
    alone = TrialBatch(trials=trials)
    if what is None or (is_timed and len(trials) == 1):
        return alone
    engine = traits(trials[0].cell)
    forked = partial(msgspec.structs.replace, alone, preload=engine.preload)
    if is_timed:  # they take turns
        return forked(shared="heap", at_once=len(trials))
    # What can fork does, though it be alone: the stack at an import stays in the heap by its
    # files' lines, and a heap must not tell who was beside it.
    if engine.can_fork:
        return forked(shared="interpreter", at_once=at_once)
    return forked(shared="engine", at_once=at_once) if len(trials) > 1 else alone


def _together(keys: Sequence[Hashable]) -> list[list[int]]:
    """The places of equal keys, together; each None is by itself."""
    groups: dict[object, list[int]] = {}
    for index, key in enumerate(keys):
        groups.setdefault((index,) if key is None else key, []).append(index)
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
