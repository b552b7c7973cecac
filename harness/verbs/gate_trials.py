"""The trials of a gate, in their order: counts, then times, then whose doing it is."""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import NamedTuple

from msgspec.structs import replace

from harness.experiment.grid import traits
from harness.experiment.outcomes import Trials
from harness.experiment.plan import COLLECTING, Plan, counting_plan, exact_turns, without_collector
from harness.experiment.rounds import HasComparisons, Outcomes, Precision
from harness.experiment.run import INTERRUPTED_NOTE, PlanRun
from harness.experiment.store import TrialKey
from harness.tracking.gate.budget import Budget, Growth
from harness.tracking.gate.exact_counts import JudgedCounts, judge_pairs
from harness.tracking.gate.kept_counts import KeptCounts
from harness.tracking.gate.not_run import functions_run
from harness.tracking.gate.plan import GatePair, exact_plan, timing_plan
from harness.tracking.gate.timing import (
    Timings,
    attribute_changes,
    changed,
    compare_timings,
    slower,
)
from harness.tracking.gate.trees import Tree
from harness.tracking.gate.waivers import Waiver
from harness.trial.output_hashes import QualifiedName, RanFunction
from harness.trial.spec import TrialFailure, TrialResult
from harness.verbs.gate_request import GateRequest
from harness.verbs.session import Session

_AS_LONG = 1.0
"""The half width of an interval that no comparison of a guard has: rounds alone end it."""
_NO_PASS = ("worse", "trade", "incomplete")
_FROM_BEFORE = (
    "{} of {} counting trials are from earlier runs over the same files, harness, interpreter, "
    "packages and environment."
)


class Found(NamedTuple):
    """What came of the trials. ``timed_seconds``: how long the timed rounds took; ``ran``: what
    HEAD's cells have executed.
    """

    judged: JudgedCounts
    failures: list[TrialFailure]
    is_interrupted: bool
    timed_seconds: float = 0.0
    ran: Sequence[RanFunction] = ()

    def joined(self, more: "Found") -> "Found":
        """This and what came of other pairs of the same commits."""
        mine, others = self.judged, more.judged
        return Found(
            JudgedCounts(
                [*mine.cells, *others.cells],
                [*mine.missing, *others.missing],
                list(dict.fromkeys([*mine.notes, *others.notes])),
            ),
            [*self.failures, *more.failures],
            self.is_interrupted or more.is_interrupted,
            self.timed_seconds + more.timed_seconds,
            [*self.ran, *more.ran],
        )


class GateTrials(NamedTuple):
    """The trials of a gate of ``name`` between BASE and HEAD of ``trees``.

    ``kept``: where both commits' counts go, and are looked up.
    ``lines_of``: functions that differ between the two.
    ``waivers``: what HEAD may have worse; ``budget``: what it may have added since ``since``.
    """

    session: Session
    name: str
    trees: Sequence[Tree]
    asked: GateRequest
    kept: KeptCounts
    waivers: Sequence[Waiver]
    budget: Budget | None
    since: Tree | None
    lines_of: Sequence[QualifiedName]

    def measure(self, pairs: Sequence[GatePair], command: Callable[[GatePair], str]) -> Found:
        """Measure the pairs; what there is to say of them. Ctrl-C leaves out what comes after.

        A pair that one of the commits cannot run is not measured.
        """
        session, name, trees = self.session, self.name, self.trees
        half_width = self.asked.until_precise / 100
        cells = [cell for each in pairs for cell in (each.base, each.head)]
        # Those that are exact say so when they count, all their trials at once.
        tried = session.try_out([cell for cell in cells if not traits(cell).is_exact])
        if tried.is_interrupted:
            refused = _refused(pairs, trees, tried.failures)
            return Found(
                JudgedCounts([], [*refused, INTERRUPTED_NOTE], []), [], is_interrupted=True
            )
        able = _without(pairs, tried.failures)
        counting = exact_plan(
            name,
            able,
            session.runner.schedule_hashes,
            self.asked.seed,
            lines_of=self.lines_of,
            with_instructions=self.asked.instructions,
        )
        known = self._known(counting, trees)
        measured = [session.run(counting, known=known)]
        plans = [counting]
        for tree in trees:
            self.kept.save(counting, tree, measured[0].outcomes)
        refusals = [*tried.failures, *_never_ran(Trials(counting, measured[0].outcomes))]
        refused, pairs = _refused(pairs, trees, refusals), _without(able, refusals)
        if not pairs:
            return Found(JudgedCounts([], refused, []), [], measured[0].is_interrupted)
        is_cut_short, growth = measured[0].is_interrupted, None
        if self.since and self.budget and not is_cut_short:
            growth, is_cut_short = self._growth(self.since, self.budget, pairs)
        timings = Timings([], {})
        timing = self._plan(pairs)
        if not (self.asked.exact_only or is_cut_short):
            plans.append(timing)
            compare = partial(compare_timings, pairs, plans[-1])
            measured.append(self._time(plans[-1], compare, half_width))
            timings = compare(measured[-1].outcomes)
            is_cut_short = measured[-1].is_interrupted
        kinds = {each: kind for each, time in timings.by_pair.items() if (kind := changed(time))}
        if kinds and not is_cut_short:
            plans.append(self._plan(list(kinds), with_controls=True))
            compare_controls = partial(attribute_changes, kinds, plans[-1])
            # Twice as wide is enough to tell the code from the collector.
            measured.append(self._time(plans[-1], compare_controls, 2 * half_width))
            for each, cause in compare_controls(measured[-1].outcomes).by_pair.items():
                timings.by_pair[each] = replace(timings.by_pair[each], attribution=cause)
        trials = [Trials(plan, each.outcomes) for plan, each in zip(plans, measured, strict=True)]
        measured_times = trials[1] if len(trials) > 1 else Trials(timing, {})
        timed = None if self.asked.exact_only else measured_times
        judged = judge_pairs(
            pairs, trials[0], timed, timings.by_pair, command, is_cut_short, self.waivers, growth
        )
        is_cut_short = is_cut_short or self._guard(pairs, judged)
        judged.missing[:0] = refused
        notes = [note for each in measured for note in each.notes]
        judged.notes.extend(dict.fromkeys([*notes, *session.notes]))
        is_cut_short = is_cut_short or measured[-1].is_interrupted
        if is_cut_short:
            judged.missing.append(INTERRUPTED_NOTE)
        if known:
            judged.notes.append(_FROM_BEFORE.format(len(known), len(exact_turns(counting))))
        never = {without_collector(failure.cell) for failure in refusals}
        failures = [
            failure
            for each in trials
            for failure in each.failures
            if without_collector(failure.cell) not in never
        ]
        seconds = measured[1].seconds if timed is not None and len(measured) > 1 else 0.0
        ran = functions_run(trials[0], [each.head for each in pairs])
        return Found(judged, failures, is_cut_short, seconds, ran)

    def _growth(
        self, since: Tree, budget: Budget, pairs: Sequence[GatePair]
    ) -> tuple[Growth, bool]:
        """Counts of the commit that the budget begins with, and whether Ctrl-C ended them."""
        plan = counting_plan(
            f"{self.name}-since",
            [replace(each.base, release=since.folder) for each in pairs],
            budget.modes,
            self.session.runner.schedule_hashes,
            self.asked.seed,
            traits(pairs[0].base).trace_every,
        )
        counted = self.session.run(plan, known=self._known(plan, [since]))
        self.kept.save(plan, since, counted.outcomes)
        return Growth(budget, since, Trials(plan, counted.outcomes)), counted.is_interrupted

    def _guard(self, pairs: Sequence[GatePair], judged: JudgedCounts) -> bool:
        """Where times are not judged, leave no verdict on cells that took longer than their counts
        say. Returns whether Ctrl-C came.
        """
        passing = {cell.id for cell in judged.cells if cell.verdict not in _NO_PASS}
        pairs = [each for each in pairs if each.id in passing]
        if not (pairs and self.asked.exact_only):
            return False
        plan = self._plan(pairs, rounds=1)
        compare = partial(slower, pairs, plan)
        ran = self.session.run(plan, Precision(_AS_LONG, inf), compare)
        found = {} if ran.is_interrupted else compare(ran.outcomes).by_id
        judged.missing.extend(f"{id_}: {why}" for id_, why in found.items())
        judged.cells[:] = [
            replace(cell, verdict="incomplete") if cell.id in found else cell
            for cell in judged.cells
        ]
        return ran.is_interrupted

    def _known(self, plan: Plan, trees: Sequence[Tree]) -> dict[TrialKey, TrialResult]:
        """Counts of these commits from earlier gates."""
        return {key: result for tree in trees for key, result in self.kept.load(plan, tree).items()}

    def _plan(
        self, pairs: Sequence[GatePair], *, with_controls: bool = False, rounds: int = 0
    ) -> Plan:
        return timing_plan(
            self.name,
            pairs,
            schedules=self.session.runner.schedule_hashes,
            seed=self.asked.seed,
            rounds=rounds or self.asked.rounds,
            tolerance=self.asked.tolerance / 100,
            with_controls=with_controls,
        )

    def _time(
        self, plan: Plan, compare: Callable[[Outcomes], HasComparisons], half_width: float
    ) -> PlanRun:
        precise = Precision(half_width, self.asked.budget)
        return self.session.run(plan, precise, compare)


def _without(pairs: Sequence[GatePair], failures: Sequence[TrialFailure]) -> list[GatePair]:
    broken = {failure.cell for failure in failures}
    return [each for each in pairs if not broken & {each.base, each.head}]


def _never_ran(counted: Trials) -> list[TrialFailure]:
    """Why a cell gave no result in any mode, a failure a cell."""
    failures = {
        failure.cell: failure
        for failure in counted.failures
        if failure.mode in COLLECTING
        and not any(counted.counted_in(mode, failure.cell) for mode in counted.plan.extra_modes)
    }
    return list(failures.values())


def _refused(
    pairs: Sequence[GatePair], trees: Sequence[Tree], failures: Sequence[TrialFailure]
) -> list[str]:
    """A sentence for each reason why a commit cannot run cells, with the cells."""
    cells: dict[tuple[str, str], list[str]] = {}
    for failure in failures:
        side = trees[0] if failure.cell.release == trees[0].folder else trees[1]
        label = f"{'BASE' if side is trees[0] else 'HEAD'}, {side.label},"
        reason = failure.reason.replace(f"{side.folder}/", "")
        (id_,) = (each.id for each in pairs if failure.cell in each)
        cells.setdefault((label, reason), []).append(id_)
    return [
        f"{label} cannot run: {reason}."
        if len(ids) == len(pairs)
        else f"{'; '.join(ids)}: {label} cannot run it: {reason}."
        for (label, reason), ids in cells.items()
    ]
