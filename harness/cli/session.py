"""From flags to a finished experiment: what the commands that run trials have in common."""

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from errno import EISDIR
from math import inf
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from engines.nearest import nearest
from engines.registry import ENGINES
from harness.axes import Cell
from harness.cli.cluster import on_cluster
from harness.cli.options import take_axes, take_workloads
from harness.cli.progress import TrialProgress
from harness.cli.quiet import parse_limit, wait_and_say
from harness.experiment.executor import Executor
from harness.experiment.grid import baselines, cross, traits, varying
from harness.experiment.known_noise import known_noise
from harness.experiment.lease import Lease
from harness.experiment.local_executor import LocalExecutor
from harness.experiment.plan import SLICE_STEPS, Plan, beside_baseline, default_decider, exact_turns
from harness.experiment.ray_cluster import WantedNodes
from harness.experiment.result import ExperimentResult
from harness.experiment.rounds import HasComparisons, Outcomes, Precision
from harness.experiment.run import PlanRun, Runner, TriedOut
from harness.experiment.shard import parse_shard
from harness.experiment.store import INCOMPLETE_FILE, TrialKey, write_json
from harness.experiment.watch import SurroundingsWatch
from harness.machine.describe import describe
from harness.machine.interrupts import held_interrupts
from harness.machine.other_work import Surroundings
from harness.metrics import METRICS
from harness.report.image_file import image_suffix
from harness.trial.arrivals import comes_by_itself
from harness.trial.spec import Mode, TrialResult
from workloads.files.whole_file import temporary_name


class Session:
    """An experiment that the command line has asked for, from its plan to its result."""

    def __init__(
        self,
        flags: dict[str, Any],
        *,
        is_prepared: bool = True,
        is_of_noise: bool = False,
        beside: "Session | None" = None,
    ) -> None:
        """Raises ValueError for what cannot be run, here too unless it is still to be prepared.

        ``is_of_noise``: noise is what is measured, so a cluster's nodes may have any. ``beside``:
        another of the same command; they watch the machine together.
        """
        self._json_path = checked(flags.pop("json_path"), "--json")
        self._quiet: bool = flags.pop("quiet")
        self.shows_tables = not self._quiet and self._json_path != "-"
        self._wait_seconds = parse_limit(flags.pop("wait_quiet", ""))
        lease = Lease(flags.pop("anyway"), self._wait_seconds or inf)
        seed, output = flags.pop("seed"), flags.pop("output")
        executor = _executor(flags, lease, None if is_of_noise else output)
        self._watch = SurroundingsWatch() if isinstance(executor, LocalExecutor) else None
        if beside is not None:
            self._watch = beside._watch
        shard = parse_shard(flags.pop("shard", ""))
        if shard and executor.is_spread:
            raise ValueError("--shard: --cluster deals out all blocks itself; leave one out")
        axes = take_axes(flags)
        workloads = take_workloads(axes, flags)
        schedules = {each.name: each.realise(seed) for each in workloads}
        self.runner = Runner(output, schedules, executor, seed, lease, shard)
        self.grid = cross(axes, schedules, {each.name: each.model for each in workloads})
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
    def notes(self) -> list[str]:
        """What was left out of a trace, and what the executor has to say, a sentence each."""
        count = sum(schedule.bad_rows for schedule in self.runner.schedules.values())
        rows = "row" if count == 1 else "rows"
        bad_rows = [f"{count:,} bad {rows} of the trace left out."] if count else []
        return [*bad_rows, *self.runner.executor.notes]

    def about(self, name: str) -> dict[str, Any]:
        """What a `Result` of this run says of itself, but for its notes."""
        return {
            "name": name,
            "command": command_line(),
            "machine": describe(),
            "workloads": self.runner.workloads,
            "surroundings": self.surroundings,
            "left_out": self.grid.left_out,
        }

    def plan(
        self,
        cells: list[Cell],
        *,
        rounds: int,
        decide: str = "",
        baseline: str = "",
        tolerance: float = 0.02,
        resume: str = "",
        name: str = "",
        counting: Sequence[Mode] = (),
        repeats: int = 1,
    ) -> Plan:
        """A plan over the cells, made once the machine is quiet where that was asked for.

        ``name``: of a new experiment, where it is not made of the time and the workload. Raises
        ValueError where the flags contradict the cells, BusyMachineError as `look_around`.
        """
        if rounds < 1:
            raise ValueError(f"--rounds {rounds}: must be at least 1")
        if repeats < 1:
            raise ValueError(f"--repeats {repeats}: must be at least 1")
        known = [metric.name for metric in METRICS.values() if metric.decides]
        if decide and decide not in known:
            near = ", ".join(nearest(decide, known))
            raise ValueError(f"--decide {decide}: no metric that can decide; did you mean {near}?")
        runner = self.runner
        begun = (runner.output / resume / name for name in ("plan.json", INCOMPLETE_FILE))
        if resume and not any(path.exists() for path in begun):
            raise ValueError(f"--resume {resume}: no experiment of this name in {runner.output}")
        chosen = baselines(cells, _parse_baseline(baseline))
        alone = {name for name, schedule in runner.schedules.items() if comes_by_itself(schedule)}
        rotations = beside_baseline(
            cells, chosen, lambda cell: cell.workload not in alone and traits(cell).can_pause
        )
        self.look_around()
        return Plan(
            name=resume or name or runner.new_name(next(iter(runner.schedules))),
            cells=cells,
            schedules=runner.schedule_hashes,
            baselines=chosen,
            decide=[decide] * len(chosen) if decide else default_decider(cells),
            rounds=rounds,
            seed=runner.seed,
            tolerance=tolerance,
            extra_modes=list(counting),
            repeats=repeats,
            rotations=rotations,
            slice_steps=SLICE_STEPS if rotations else 0,
        )

    def look_around(self) -> None:
        """See how busy the machine is before the first trial, and wait where that was asked for.

        Raises BusyMachineError where it does not become quiet.
        """
        if self._watch is not None and not self._watch.has_looked:
            seconds = self._wait_seconds
            self._watch.look(wait_and_say(seconds, quiet=self._quiet) if seconds else None)

    @property
    def machines(self) -> int:
        """How many measure side by side."""
        return self.runner.executor.machines

    @property
    def surroundings(self) -> Surroundings | None:
        """What else this machine did; None where trials run elsewhere."""
        return self._watch.surroundings() if self._watch is not None else None

    def try_out(self, cells: Sequence[Cell]) -> TriedOut:
        """Which of the cells cannot be run at all."""
        with Console(stderr=True, quiet=self._quiet).status("trying each cell"):
            return self.runner.try_out(cells)

    def run(
        self,
        plan: Plan,
        precise: Precision | None = None,
        compare: Callable[[Outcomes], HasComparisons] | None = None,
        known: Mapping[TrialKey, TrialResult] = {},
    ) -> PlanRun:
        """Run what is neither stored nor ``known`` yet, while somebody looks on."""
        if self._watch is not None:
            self._watch.begin()
        total = plan.rounds * sum(map(len, plan.timed)) + len(exact_turns(plan))
        if self.runner.shard:
            total = -(-total // self.runner.shard.total)
        with TrialProgress(total, varying(plan.cells), self._quiet) as progress:
            ran = self.runner.run(plan, compare, precise, progress, known)
        if self._watch is not None:
            self._watch.add(ran.outcomes.values())
        return ran

    def summarise(self, ran: PlanRun) -> ExperimentResult:
        """What a run says, kept beside its trials."""
        with held_interrupts():
            return self.runner.summarise(
                ran,
                command=command_line(),
                notes=self.notes,
                left_out=self.grid.left_out,
                surroundings=self.surroundings,
            )

    @property
    def told(self) -> dict[str, Any]:
        """How `tell` is to tell the result: where JSON goes, and whether anything is printed."""
        return {"json": self._json_path, "quiet": self._quiet}

    def write_json(self, value: Any) -> None:
        """Write what `--json` asked for, if it did."""
        if self._json_path:
            write_json(self._json_path, value)


def _executor(flags: dict[str, Any], lease: Lease, results: Path | None) -> Executor:
    """This machine, unless a cluster is named, or whoever called the command line has brought
    another (see `main`). ``results``: a folder that says which nodes are too noisy.
    """
    timeout_seconds = flags.pop("trial_timeout")
    address = flags.pop("cluster", "")
    without, like = flags.pop("leave_out", ""), flags.pop("like", "")
    if address:
        names = {name.strip() for name in without.split(",") if name.strip()}
        noise = known_noise(results) if results else None
        return on_cluster(address, WantedNodes(names, like, noise), timeout_seconds, lease)
    for flag, given in (("--leave-out", without), ("--like", like)):
        if given:
            raise ValueError(f"{flag} {given}: names a node of a cluster; give --cluster, too")
    make = click.get_current_context().obj or LocalExecutor
    executor: Executor = make(timeout_seconds)
    return executor


def command_line() -> str:
    """The command that was given."""
    return shlex.join(["gcbench", *sys.argv[1:]])


def checked(path: str | None, option: str) -> str | None:
    """The path that an option names, refused now rather than after the measurement."""
    if path and path != "-":
        file = Path(path)
        try:
            if not file.name:
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
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


def checked_image(path: str | None) -> str:
    """The kind of picture that ``--image`` asks for, "" for none. Raises ValueError."""
    checked(path, "--image")
    return image_suffix(Path(path)) if path else ""


def _parse_baseline(text: str) -> dict[str, str]:
    if not text:
        return {}
    pairs = [part.split("=", 1) for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"--baseline {text}: must be AXIS=VALUE, several separated by commas")
    return {axis.replace("-", "_"): value for axis, value in pairs}
