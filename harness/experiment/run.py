"""The road of every experiment: what is asked for, replayed, executed, kept and summed up.

The command line, asv's suites and whoever comes next go along it. It says nothing to anybody: who
wants to see how far it is hands in a `PlanProgress`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import msgspec
import numpy as np

from harness.axes import Cell
from harness.experiment.executor import Executor, TrialOutcome
from harness.experiment.grid import traits
from harness.experiment.plan import Plan, Turn
from harness.experiment.result import ExperimentResult
from harness.experiment.rounds import HasComparisons, Outcomes, Precision, Rounds
from harness.experiment.same_origin import Launched, launched, origin_differences
from harness.experiment.shard import Shard
from harness.experiment.store import RunStore, StoreError, TrialKey, new_name, trial_key
from harness.experiment.summarise import summarise
from harness.machine.describe import Machine, describe
from harness.machine.other_work import Surroundings
from harness.machine.scratch import scratch_folder
from harness.result.result import ReplayedWorkload, keep_result
from harness.running.lease import Expects, Lease, nobody_hears
from harness.trial.spec import Mode, Trial, TrialFailure, TrialResult
from workloads.schedule import Schedule

INTERRUPTED_NOTE = "Interrupted before everything was measured."
_TRY_OUT_STEPS = 2


class PlanProgress:
    """Is told how far a plan has come, and says nothing of it."""

    def check(self, count: int) -> None:
        """Whether new trials would compare with so many stored ones is looked at."""

    def skip(self, count: int) -> None:
        """So many trials were there already."""

    def on_trial(self, turn: Turn, outcome: TrialOutcome) -> None:
        """A trial has ended."""

    def wait_for(self, owner: str) -> None:
        """Another process measures on this machine; told again and again until it has ended."""


_UNWATCHED = PlanProgress()


class PlanRun(NamedTuple):
    """What a plan's trials gave, what there is to say of how, and where they are kept.

    ``seconds``: how long it took.
    """

    plan: Plan
    outcomes: Outcomes
    notes: list[str]
    store: RunStore
    is_interrupted: bool
    seconds: float = 0.0


class TriedOut(NamedTuple):
    """Why some cells cannot be run."""

    failures: list[TrialFailure]
    is_interrupted: bool


def replayed(schedules: Mapping[str, Schedule]) -> list[ReplayedWorkload]:
    """The schedules of workloads, as a result names them."""
    return [
        ReplayedWorkload(
            name=name,
            hash=schedule.sha256,
            num_requests=schedule.num_requests,
            total_output_tokens=schedule.total_output_tokens,
        )
        for name, schedule in schedules.items()
    ]


def _machine(outcomes: Outcomes) -> Machine:
    """Where trials ran: this machine, unless they say that it was a node."""
    results = (each for each in outcomes.values() if isinstance(each, TrialResult) and each.node)
    return next((each.machine for each in results if each.machine), None) or describe()


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs plans: ``output`` is where trials are kept, ``schedules`` what workloads replay.

    ``shard``: the part of the blocks that is run here; None: all.
    """

    output: Path
    schedules: Mapping[str, Schedule]
    executor: Executor
    seed: int = 0
    lease: Lease = field(default_factory=Lease)
    shard: Shard | None = None

    @property
    def schedule_hashes(self) -> dict[str, str]:
        """The hash of each workload's schedule."""
        return {name: schedule.sha256 for name, schedule in self.schedules.items()}

    @property
    def workloads(self) -> list[ReplayedWorkload]:
        """What was replayed, as a result names it."""
        return replayed(self.schedules)

    def new_name(self, label: str) -> str:
        """A name for a new experiment. Raises StoreError where nothing can be written."""
        return new_name(self.output, label)

    def run(
        self,
        plan: Plan,
        compare: Callable[[Outcomes], HasComparisons] | None = None,
        precise: Precision | None = None,
        progress: PlanProgress = _UNWATCHED,
        known: Mapping[TrialKey, TrialResult] = {},
        is_awake: bool = False,
    ) -> PlanRun:
        """Run what is not stored yet; Ctrl-C leaves all that has ended, and a mark beside it.

        With ``precise`` it goes on past the plan's rounds until what ``compare`` gives is so, by
        default the plan's own comparisons. Raises StoreError where nothing can be kept, or where
        stored trials are of another machine, interpreter, code or dependency.

        ``known``: results that somebody has from elsewhere; they are stored with the others.
        ``is_awake``: see `Rounds`.
        """
        store = RunStore(self.output, plan.name)
        rounds = Rounds(
            plan,
            store,
            self.executor,
            progress.on_trial,
            alone=partial(self._alone, progress.wait_for),
            shard=self.shard,
            is_awake=is_awake,
        )
        is_interrupted, began = True, monotonic()
        with suppress(KeyboardInterrupt), store.writer():
            if store.adopt_plan(plan):
                rounds.outcomes |= store.load_trials()
                self._keep_schedules(store)
                progress.check(len(rounds.outcomes))
                self._refuse_others(store, rounds.outcomes)
            store.mark_incomplete()
            self._keep_schedules(store)
            for key, result in known.items():
                store.save_trial(key, result)
            rounds.outcomes |= known
            progress.skip(len(rounds.outcomes))
            rounds.run(
                compare or partial(summarise, plan, machine=Machine(), workloads=[], command=""),
                precise or Precision(0.0, 0.0),
            )
            store.mark_complete()
            is_interrupted = False
        notes = list(store.warnings)
        if rounds.repeated:
            notes.append(f"{rounds.repeated} trials were repeated: the machine was too busy.")
        notes += self.lease.notes
        if self.shard:
            notes.append(
                f"Only the blocks of {self.shard}; `gcbench report --merge` puts shards together."
            )
        seconds = monotonic() - began
        return PlanRun(plan, rounds.outcomes, notes, store, is_interrupted, seconds)

    def summarise(
        self,
        ran: PlanRun,
        *,
        command: str,
        notes: Sequence[str] = (),
        left_out: Sequence[str] = (),
        surroundings: Surroundings | None = None,
    ) -> ExperimentResult:
        """What a run says, kept beside its trials; ``notes`` are said besides its own."""
        said = [INTERRUPTED_NOTE] * ran.is_interrupted + [*ran.notes, *notes]
        result = summarise(
            ran.plan,
            ran.outcomes,
            machine=_machine(ran.outcomes),
            workloads=self.workloads,
            command=command,
            notes=said,
        )
        result = msgspec.structs.replace(
            result,
            is_complete=not ran.is_interrupted,
            left_out=list(left_out),
            surroundings=surroundings,
        )
        if ran.is_interrupted:
            ran.store.mark_incomplete()  # it may have been interrupted before it could say so
        keep_result(self.output, result)
        return result

    def run_one(
        self, cell: Cell, mode: Mode, max_steps: int, says: Callable[[str], None]
    ) -> tuple[str, TrialOutcome]:
        """One trial by itself, kept like any other under a name; ``says``: see `Lease.hold`."""
        store = RunStore(self.output, self.new_name(f"run-{cell.workload}"))
        key = trial_key(1, 0, cell, mode)
        rows = str(store.rows_path(key)) if mode == "timing" else ""
        path = store.schedule_path(self.schedules[cell.workload].sha256)
        alone = self._alone(says) if mode == "timing" else nullcontext(nobody_hears)
        with store.writer(), alone:
            self._keep_schedules(store)
            (outcome,) = self.executor.run([self._trial(cell, path, mode, max_steps, rows)])
            store.keep_rows(key)
            store.save_trial(key, outcome)
        return store.name, outcome

    def try_out(self, cells: Sequence[Cell]) -> TriedOut:
        """Run a few steps of each cell and keep nothing, to see which cannot be run at all."""
        failures: list[TrialFailure] = []
        size = self.executor.batch_size(cells)
        with scratch_folder() as scratch:
            paths = {name: scratch / f"{of.sha256}.npz" for name, of in self.schedules.items()}
            for name, path in paths.items():
                self.schedules[name].save(path)
            trials = [
                self._trial(cell, paths[cell.workload], "counts", _TRY_OUT_STEPS) for cell in cells
            ]
            try:
                for begin in range(0, len(trials), size):
                    outcomes = self.executor.run(trials[begin : begin + size])
                    failures += [each for each in outcomes if isinstance(each, TrialFailure)]
            except KeyboardInterrupt:
                return TriedOut(failures, is_interrupted=True)
        return TriedOut(failures, is_interrupted=False)

    def _alone(self, says: Callable[[str], None]) -> AbstractContextManager[Expects]:
        """This machine for oneself, where it is the one that measures."""
        return nullcontext(nobody_hears) if self.executor.is_spread else self.lease.hold(says)

    def _keep_schedules(self, store: RunStore) -> None:
        for schedule in self.schedules.values():
            schedule.save(store.schedule_path(schedule.sha256))

    def _refuse_others(self, store: RunStore, outcomes: Outcomes) -> None:
        """Raise StoreError where trials to come would be of another origin than those stored."""
        stored: dict[Launched, list[TrialResult]] = {}
        for outcome in outcomes.values():
            if isinstance(outcome, TrialResult):
                stored.setdefault(launched(outcome.cell), []).append(outcome)
        for results in stored.values():
            cell = msgspec.structs.replace(results[0].cell, heap_objects=0)
            path = store.schedule_path(self.schedules[cell.workload].sha256)
            (now,) = self.executor.run([self._trial(cell, path, "counts", _TRY_OUT_STEPS)])
            if isinstance(now, TrialFailure):
                continue  # it will fail again, and be said then
            if found := next(
                filter(None, (origin_differences(each, now) for each in results)), None
            ):
                raise StoreError(
                    f"--resume {store.name}: its trials differ from what would be measured now in "
                    f"{'; '.join(found)}; go back to what they were measured with, or begin a new "
                    "experiment without --resume"
                )

    def _trial(
        self, cell: Cell, schedule_path: Path, mode: Mode, max_steps: int, rows_path: str = ""
    ) -> Trial:
        return Trial(
            cell=cell,
            schedule_path=str(schedule_path),
            schedule_sha256=self.schedules[cell.workload].sha256,
            mode=mode,
            seed=self.seed,
            max_steps=max_steps,
            rows_path=rows_path,
            gc_cycle=float(np.random.default_rng(self.seed).random()),
            is_exact=traits(cell).is_exact,
        )
