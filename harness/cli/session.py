"""From flags to a finished experiment: what `compare` and `noise` have in common."""

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
from rich.console import Console

from engines.registry import ENGINES
from harness.axes import Cell
from harness.cli.options import take_axes, take_workloads
from harness.cli.progress import TrialProgress
from harness.experiment.grid import baselines, cross, varying
from harness.experiment.local_executor import isolate
from harness.experiment.plan import Plan, default_decider, exact_turns
from harness.experiment.result import ExperimentResult
from harness.experiment.rounds import Compared, Outcomes, Precision, Rounds, prepared_at_once
from harness.experiment.store import RunStore, new_name, trial_key, write_json
from harness.experiment.summarise import summarise
from harness.machine.describe import describe
from harness.metrics import METRICS
from harness.trial.spec import Mode, Trial, TrialFailure, TrialResult
from workloads.whole_file import temporary_name

INTERRUPTED = "Interrupted before everything was measured."
_TRY_OUT_STEPS = 2


class Session:
    """An experiment that the command line has asked for, from its plan to its result."""

    def __init__(self, flags: dict[str, Any], *, is_prepared: bool = True) -> None:
        """Raises ValueError for what cannot be run, here too unless it is still to be prepared."""
        self._json_path = checked(flags.pop("json_path"), "--json")
        self._quiet: bool = flags.pop("quiet")
        self.shows_tables = not self._quiet and self._json_path != "-"
        self._timeout: float = flags.pop("trial_timeout")
        self._output: Path = flags.pop("output")
        self._seed: int = flags.pop("seed")
        axes = take_axes(flags)
        self.workloads = take_workloads(axes, flags)
        self.schedules = {w.name: w.realise(self._seed) for w in self.workloads}
        self.grid = cross(axes, self.schedules, {w.name: w.model for w in self.workloads})
        if is_prepared:
            for cell in self.grid.cells:
                ENGINES.load(cell.engine).launch(cell.python, cell.release)

    @property
    def schedule_hashes(self) -> dict[str, str]:
        """The hash of each workload's schedule."""
        return {name: schedule.sha256 for name, schedule in self.schedules.items()}

    @property
    def cell(self) -> Cell:
        """The grid's only cell. Raises ValueError where there are several."""
        if len(self.grid.cells) > 1:
            raise ValueError("this command takes one value an axis; gcbench compare takes several")
        return self.grid.cells[0]

    @property
    def bad_rows(self) -> list[str]:
        """A sentence where rows of a trace were left out."""
        count = sum(schedule.bad_rows for schedule in self.schedules.values())
        rows = "row" if count == 1 else "rows"
        return [f"{count:,} bad {rows} of the trace left out."] if count else []

    def plan(
        self,
        cells: list[Cell],
        *,
        rounds: int,
        decide: str = "",
        baseline: str = "",
        tolerance: float = 0.02,
        resume: str = "",
        counting: Sequence[Mode] = (),
        repeats: int = 1,
    ) -> Plan:
        """A plan over the cells. Raises ValueError where the flags contradict them."""
        if rounds < 1:
            raise ValueError(f"--rounds {rounds}: must be at least 1")
        if repeats < 1:
            raise ValueError(f"--repeats {repeats}: must be at least 1")
        known = [metric.name for metric in METRICS.values() if metric.decides]
        if decide and decide not in known:
            near = get_close_matches(decide, known, n=3, cutoff=0.4) or known
            raise ValueError(
                f"--decide {decide}: no metric that can decide; nearest: {', '.join(near)}"
            )
        if resume and not (self._output / resume / "plan.json").exists():
            raise ValueError(f"--resume {resume}: no experiment of this name in {self._output}")
        chosen = baselines(cells, _parse_baseline(baseline))
        return Plan(
            name=resume or new_name(self._output, self.workloads[0].name),
            cells=cells,
            schedules=self.schedule_hashes,
            baselines=chosen,
            decide=[decide] * len(chosen) if decide else default_decider(cells),
            rounds=rounds,
            seed=self._seed,
            tolerance=tolerance,
            extra_modes=list(counting),
            repeats=repeats,
        )

    def run_one(self, mode: Mode, max_steps: int) -> TrialResult | TrialFailure:
        """One trial of the only cell, kept like any other."""
        cell = self.cell
        store = self._store(new_name(self._output, f"run-{cell.workload}"))
        schedule = self.schedules[cell.workload]
        key = trial_key(1, 0, cell, mode)
        trial = Trial(
            cell=cell,
            schedule_path=str(store.schedule_path(schedule.sha256)),
            schedule_sha256=schedule.sha256,
            mode=mode,
            seed=self._seed,
            max_steps=max_steps,
            rows_path=str(store.rows_path(key)) if mode == "timing" else "",
        )
        (outcome,) = isolate([trial], self._timeout)
        store.keep_rows(key)
        store.save_trial(key, outcome)
        return outcome

    def try_out(self, cells: Sequence[Cell]) -> "TriedOut":
        """Run a few steps of each cell and keep nothing, to see which cannot be run at all."""
        failures = []
        with TemporaryDirectory(prefix="gcbench-") as scratch:
            trials = []
            for cell in cells:
                schedule = self.schedules[cell.workload]
                path = Path(scratch) / f"{schedule.sha256}.npz"
                if not path.exists():
                    schedule.save(path)
                trials.append(
                    Trial(
                        cell=cell,
                        schedule_path=str(path),
                        schedule_sha256=schedule.sha256,
                        mode="counts",
                        seed=self._seed,
                        max_steps=_TRY_OUT_STEPS,
                    )
                )
            size = prepared_at_once(cells)
            try:
                with Console(stderr=True, quiet=self._quiet).status("trying each cell"):
                    for begin in range(0, len(trials), size):
                        outcomes = isolate(trials[begin : begin + size], self._timeout)
                        failures += [each for each in outcomes if isinstance(each, TrialFailure)]
            except KeyboardInterrupt:
                return TriedOut(failures, is_interrupted=True)
        return TriedOut(failures, is_interrupted=False)

    def folder(self, plan: Plan) -> Path:
        """Where a plan's trials are kept."""
        return self._output / plan.name

    def write_json(self, value: Any) -> None:
        """Write what `--json` asked for, if it did."""
        if self._json_path:
            write_json(self._json_path, value)

    def _store(self, name: str) -> RunStore:
        store = RunStore(self._output, name)
        store.create()
        for schedule in self.schedules.values():
            schedule.save(store.schedule_path(schedule.sha256))
        return store

    def run(self, plan: Plan, precise: Precision) -> tuple[ExperimentResult, bool]:
        """Run what is not stored yet; the result, and whether Ctrl-C ended it early."""
        measured = self.measure(plan, partial(self._summarise, plan), precise)
        notes = [INTERRUPTED] * measured.is_interrupted + measured.notes
        result = self._summarise(plan, measured.outcomes, notes)
        result = msgspec.structs.replace(result, is_complete=not measured.is_interrupted)
        measured.store.save_experiment(result)
        return result, measured.is_interrupted

    def measure(
        self, plan: Plan, compare: Callable[[Outcomes], Compared], precise: Precision
    ) -> "Measured":
        """Run what is not stored yet, until ``compare`` gives comparisons that are ``precise``."""
        store = self._store(plan.name)
        store.adopt_plan(plan)
        total = plan.rounds * len(plan.cells) + len(exact_turns(plan))
        interrupted = False
        stored = store.load_trials()
        with TrialProgress(total, varying(plan.cells), self._quiet) as progress:
            progress.skip(len(stored))
            rounds = Rounds(
                plan,
                store,
                partial(isolate, timeout_seconds=self._timeout),
                progress.on_trial,
                batch=prepared_at_once(plan.cells),
                outcomes=stored,
            )
            try:
                rounds.run(compare, precise)
            except KeyboardInterrupt:
                interrupted = True
        notes = [*store.warnings, *(f"Left out: {why}." for why in self.grid.left_out)]
        if rounds.repeated:
            notes.append(f"{rounds.repeated} trials were repeated: the machine was too busy.")
        return Measured(rounds.outcomes, [*notes, *self.bad_rows], store, interrupted)

    def _summarise(
        self, plan: Plan, outcomes: Outcomes, notes: Sequence[str] = ()
    ) -> ExperimentResult:
        return summarise(
            plan,
            outcomes,
            machine=describe(),
            workload=self.workload_words(),
            command=command_line(),
            notes=notes,
        )

    def workload_words(self) -> dict[str, Any]:
        """Names and hashes of what was replayed."""
        first = self.schedules[self.workloads[0].name]
        return {
            "name": ", ".join(self.schedules),
            "hash": ", ".join(self.schedule_hashes.values()),
            "num_requests": first.num_requests,
            "total_output_tokens": first.total_output_tokens,
            "seed": self._seed,
        }


class TriedOut(NamedTuple):
    """Why some cells cannot be run."""

    failures: list[TrialFailure]
    is_interrupted: bool


class Measured(NamedTuple):
    """What a plan's trials gave, what there is to say of how, and where they are kept."""

    outcomes: Outcomes
    notes: list[str]
    store: RunStore
    is_interrupted: bool


def command_line() -> str:
    """The command that was given."""
    return shlex.join(["gcbench", *sys.argv[1:]])


def checked(path: str | None, option: str) -> str | None:
    """The path that an option names, refused now rather than after the measurement."""
    if path and path != "-":
        file = Path(path)
        try:
            with suppress(FileNotFoundError):
                temporary_name(file).stat()
            refused = file.is_dir() or not os.access(
                file if file.exists() else file.parent, os.W_OK
            )
        except OSError as error:
            raise ValueError(f"{option} {path}: {error.strerror}; give another name") from None
        if refused:
            raise ValueError(f"{option} {path}: cannot be written; name a file in a folder")
    return path


def _parse_baseline(text: str) -> dict[str, str]:
    if not text:
        return {}
    pairs = [part.split("=", 1) for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"--baseline {text}: must be AXIS=VALUE, several separated by commas")
    return {axis.replace("-", "_"): value for axis, value in pairs}
