"""From flags to a finished experiment: what `compare` and `noise` have in common."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from engines.registry import ENGINES
from harness.cli.options import take_axes, take_workloads
from harness.cli.progress import TrialProgress
from harness.experiment import ExperimentResult
from harness.grid import baselines, cross, varying
from harness.isolate import isolate
from harness.machine import cores_usable, describe
from harness.metrics import METRICS
from harness.plan import Plan, default_decider, exact_turns
from harness.rounds import Outcomes, Precision, Rounds
from harness.store import RunStore, new_name, trial_key, write_json
from harness.summarise import summarise
from harness.trial import Cell, Mode, Trial, TrialFailure, TrialResult
from workloads.schedule import Schedule
from workloads.workload import Workload

_PREPARED_AT_ONCE = 4
"""Interpreters that get ready side by side at most: each holds torch and a heap."""


class Session:
    """An experiment that the command line has asked for, from its plan to its result."""

    def __init__(self, flags: dict[str, Any], *, is_prepared: bool = True) -> None:
        """Raises ValueError for what cannot be run, here too unless it is still to be prepared."""
        self._json_path = _checked(flags.pop("json_path"))
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
            schedules={name: schedule.sha256 for name, schedule in self.schedules.items()},
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
        store = self._store(plan.name)
        store.adopt_plan(plan)
        describe_result = partial(self._summarise, plan, store)
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
                batch=min(cores_usable(), _PREPARED_AT_ONCE),
                outcomes=stored,
            )
            try:
                rounds.run(describe_result, precise)
            except KeyboardInterrupt:
                interrupted = True
        result = describe_result(rounds.outcomes, rounds.repeated)
        store.save_experiment(result)
        return result, interrupted

    def _summarise(
        self, plan: Plan, store: RunStore, outcomes: Outcomes, repeated: int = 0
    ) -> ExperimentResult:
        notes = [*store.warnings, *(f"Left out: {why}." for why in self.grid.left_out)]
        if repeated:
            notes.append(f"{repeated} trials were repeated because the machine was too busy.")
        notes += self.bad_rows
        return summarise(
            plan,
            outcomes,
            machine=describe(),
            workload=_workload_words(self.workloads, self.schedules, self._seed),
            command=shlex.join(["gcbench", *sys.argv[1:]]),
            notes=notes,
        )


def _checked(json_path: str | None) -> str | None:
    """The path for `--json`, refused now rather than after the measurement."""
    if json_path and json_path != "-":
        path = Path(json_path)
        if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise ValueError(f"--json {json_path}: cannot be written; name a file in a folder")
    return json_path


def _parse_baseline(text: str) -> dict[str, str]:
    if not text:
        return {}
    pairs = [part.split("=", 1) for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"--baseline {text}: must be AXIS=VALUE, several separated by commas")
    return {axis.replace("-", "_"): value for axis, value in pairs}


def _workload_words(
    workloads: Sequence[Workload], schedules: Mapping[str, Schedule], seed: int
) -> dict[str, Any]:
    first = schedules[workloads[0].name]
    return {
        "name": ", ".join(schedules),
        "hash": ", ".join(schedule.sha256 for schedule in schedules.values()),
        "num_requests": first.num_requests,
        "total_output_tokens": first.total_output_tokens,
        "seed": seed,
    }
