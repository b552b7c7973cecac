"""From a request to a finished experiment: what the verbs that run trials have in common."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from engines.nearest import nearest
from engines.registry import ENGINES
from harness.axes import Cell
from harness.experiment.executor import Executor
from harness.experiment.grid import baselines, cross, traits, varying
from harness.experiment.known_noise import known_noise
from harness.experiment.local_executor import LocalExecutor
from harness.experiment.plan import SLICE_STEPS, Plan, beside_baseline, default_decider, exact_turns
from harness.experiment.ray.cluster import WantedNodes
from harness.experiment.ray.executor import RayExecutor
from harness.experiment.result import ExperimentResult
from harness.experiment.rounds import HasComparisons, Outcomes, Precision
from harness.experiment.run import PlanRun, Runner, TriedOut
from harness.experiment.shard import Shard
from harness.experiment.store import INCOMPLETE_FILE, TrialKey
from harness.experiment.watch import SurroundingsWatch
from harness.machine.describe import describe
from harness.machine.interrupts import held_interrupts
from harness.machine.other_work import Surroundings
from harness.metrics import METRICS
from harness.running.lease import Lease
from harness.trial.arrivals import comes_by_itself
from harness.trial.spec import Mode, TrialResult
from harness.verbs.caller import Caller
from harness.verbs.engine_values import engine_values
from harness.verbs.quiet import lease_of, parse_limit
from harness.verbs.request import GridRequest, SpreadRequest, TimedRequest
from harness.verbs.workloads import workloads_of


class Session:
    """What somebody has asked for, from its plan to its result."""

    def __init__(
        self,
        request: GridRequest,
        caller: Caller,
        *,
        shard: Shard | None = None,
        is_prepared: bool = True,
        is_of_noise: bool = False,
        beside: "Session | None" = None,
    ) -> None:
        """Raises ValueError for what cannot be run, here too unless it is still to be prepared.

        ``shard``: the part of the blocks that runs here; None: all. ``is_of_noise``: noise is what
        is measured, so a cluster's nodes may have any. ``beside``: another of the same question;
        they watch the machine together.
        """
        self.caller = caller
        wait = request.wait if isinstance(request, TimedRequest) else ""
        self._wait_seconds = parse_limit(wait)
        self._is_awake = False
        lease = lease_of(wait)
        executor = _executor(request, caller, lease, is_of_noise=is_of_noise)
        self._watch = SurroundingsWatch() if isinstance(executor, LocalExecutor) else None
        if beside is not None:
            self._watch = beside._watch
        if shard and executor.is_spread:
            raise ValueError("--shard: --cluster deals out all blocks itself; leave one out")
        axes = engine_values(request)
        workloads = workloads_of(axes["workload"], request)
        axes["workload"] = [workload.name for workload in workloads]
        schedules = {each.name: each.realise(request.seed) for each in workloads}
        self.runner = Runner(request.output, schedules, executor, request.seed, lease, shard)
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
            "command": self.caller.command,
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
            self._watch.look(self.caller.wait_until_quiet(seconds) if seconds else None)

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
        with self.caller.working("trying each cell"):
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
            shard = self.runner.shard
            total = -(-total * shard.width // shard.total)
        with self.caller.progress(total, varying(plan.cells)) as progress:
            ran = self.runner.run(plan, compare, precise, progress, known, self._is_awake)
        self._is_awake = self._is_awake or len(ran.outcomes) > len(known)
        if self._watch is not None:
            self._watch.add(ran.outcomes.values())
        return ran

    def summarise(self, ran: PlanRun) -> ExperimentResult:
        """What a run says, kept beside its trials."""
        with held_interrupts():
            return self.runner.summarise(
                ran,
                command=self.caller.command,
                notes=self.notes,
                left_out=self.grid.left_out,
                surroundings=self.surroundings,
            )


def _executor(request: GridRequest, caller: Caller, lease: Lease, *, is_of_noise: bool) -> Executor:
    """The caller's, unless a cluster is named, whose nodes must not be too noisy."""
    spread = request if isinstance(request, SpreadRequest) else SpreadRequest()
    if spread.cluster:
        names = {name.strip() for name in spread.leave_out.split(",") if name.strip()}
        noise = None if is_of_noise else known_noise(request.output)
        cluster = caller.cluster(spread.cluster, WantedNodes(names, spread.like, noise))
        seconds = 0.0 if lease.limit_seconds == inf else lease.limit_seconds
        return RayExecutor(cluster, request.trial_timeout, lease.anyway, seconds)
    for flag, given in (("--leave-out", spread.leave_out), ("--like", spread.like)):
        if given:
            raise ValueError(f"{flag} {given}: names a node of a cluster; give --cluster, too")
    return caller.executor(request.trial_timeout)


def _parse_baseline(text: str) -> dict[str, str]:
    if not text:
        return {}
    pairs = [part.split("=", 1) for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"--baseline {text}: must be AXIS=VALUE, several separated by commas")
    return {axis.replace("-", "_"): value for axis, value in pairs}
