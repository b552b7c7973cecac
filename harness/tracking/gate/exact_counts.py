"""The verdict on a commit: exact metrics as they stand, host time by its rounds, cell by cell."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from engines.protocol import NOT_AS_DEPLOYED
from harness import format as fmt
from harness.axes import Cell, values
from harness.experiment.first_difference import outputs_difference
from harness.experiment.grid import traits
from harness.experiment.outcomes import Trials
from harness.experiment.plan import BRIEF, says_something
from harness.experiment.same_work import difference
from harness.explain.largest_changes import LargestChange, largest_changes
from harness.explain.sides import BY_FUNCTION, read_side
from harness.metrics import AT_MOST_ONE_A_ROW, METRICS, Metric
from harness.not_measured import NotMeasured
from harness.statistics.paired_ratio import FEWEST_PAIRS
from harness.tracking.gate.budget import Growth
from harness.tracking.gate.c_functions import c_function_changes
from harness.tracking.gate.plan import DECIDES, GatePair
from harness.tracking.gate.result import ExactChange, GateCell, GateVerdict, TimingChange
from harness.tracking.gate.waivers import OUTPUTS, TRAILER, Waiver
from harness.trial.step_costs import change_of, usual_count

FIGURES = ("request_throughput", "output_throughput", "seconds_per_request", "tpot_median", DECIDES)

OF_A_GENERATION = frozenset(f"gc_collections_gen{generation}" for generation in range(3))

_SIDES = ("BASE", "HEAD")

_MOST_REST = 0.01
"""Of a step: what its parts by batch and context may leave unexplained without a word."""


class Exact(NamedTuple):
    """What both commits counted; ``untold``: a sentence for each count that is no figure."""

    changes: list[ExactChange]
    untold: list[str]


class _Counts(NamedTuple):
    before: float
    after: float


def exact_changes(
    trials: Trials, each: GatePair, waivers: Sequence[Waiver] = (), growth: Growth | None = None
) -> Exact:
    """Each exact metric that both commits gave, in the table's order.

    Collections are left out where equal trials did not count alike, and what no one can have: a
    count below nothing, or one that windows do not agree in.
    """
    exact = Exact([], [])
    if not traits(each.base).is_exact:
        return exact
    steady, beside = not unsteady(trials, each), _beside(trials, each)
    for metric in METRICS.values():
        if metric.kind != "exact" or metric.direction == "neither":
            continue
        if metric.mode == BY_FUNCTION and beside:
            continue
        counts = _counts(trials, each, metric)
        if counts is None or (metric.mode == "counts" and not steady):
            continue
        if isinstance(counts, NotMeasured):
            exact.untold.append(counts.reason)
            continue
        mine = [waiver for waiver in waivers if waiver.covers(metric.name, each.id)]
        grown = growth.of(each.base, metric) if growth else None
        exact.changes.append(_change(metric, counts, mine, grown))
    return _without_fitted_gains(_without_outweighed(exact, trials, each), _rest(trials, each))


def _without_outweighed(exact: Exact, trials: Trials, each: GatePair) -> Exact:
    """No part is worse that a request's own part makes up for in each step that was traced: of
    `AT_MOST_ONE_A_ROW` there are no more than requests, whatever the batch and the context.
    """
    before, after = (trials.counted_in("grid", cell) for cell in (each.base, each.head))
    steps = list(zip(before.grid_steps, after.grid_steps, strict=True)) if before and after else []
    if not steps or any(head > base for base, head in steps):
        return exact
    told, untold = [], list(exact.untold)
    for change in exact.changes:
        is_part = change.metric in AT_MOST_ONE_A_ROW
        if not is_part or change.verdict != "worse" or change.overspends:
            told.append(change)
            continue
        both = _both(change.before, change.after)
        untold.append(
            f"{change.metric} is not held against HEAD: it grew ({both}), but none of the "
            f"{len(steps)} steps that were traced took more."
        )
    return Exact(told, untold)


def _without_fitted_gains(exact: Exact, rest: float) -> Exact:
    """Of a fit that does not fit one part is too small where another is too large. So no part is
    told to have become smaller where a ``rest`` is unexplained, nor better where another has become
    larger: steps may cost more up to some batch alone.
    """
    fitted = [each for each in exact.changes if METRICS[each.metric].mode == "grid"]
    has_grown = any(each.verdict == "worse" for each in fitted)
    told, untold = [], list(exact.untold)
    for each in exact.changes:
        why = ""
        if each in fitted and each.after < each.before and rest > _MOST_REST:
            why = f"batch and context leave {fmt.percent(rest)} of a step unexplained"
        elif each in fitted and each.verdict == "better" and has_grown:
            why = "another part larger"
        if not why:
            told.append(each)
            continue
        both = _both(each.before, each.after)
        untold.append(f"{each.metric} is not told: it comes out smaller ({both}), but {why}.")
    return Exact(told, untold)


def _change(
    metric: Metric, counts: _Counts, waivers: Sequence[Waiver], grown: tuple[float, float] | None
) -> ExactChange:
    """Waivers add up; what is beyond them is held against the floor as any change is, and to the
    digit where a budget is spent.
    """
    assert metric.direction != "neither"
    before, after = counts
    change = ExactChange(
        metric=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        before=before,
        after=after,
        verdict="same",
    )
    if grown is not None:
        change = replace(change, since=grown[0], budget=grown[1])
    if not (metric.differs(before, after) or change.overspends):
        return change
    if change.loss < 0:
        return replace(change, verdict="better")
    accepts = sum(waiver.amount(before) for waiver in waivers)
    beyond = max(0.0, change.loss - accepts)
    is_enough = accepts > 0 and not (
        metric.differs(before, before + beyond) or (change.overspends and round(beyond, 6))
    )
    return replace(change, verdict="accepted" if is_enough else "worse", accepts=accepts)


def _counts(trials: Trials, each: GatePair, metric: Metric) -> _Counts | NotMeasured | None:
    """Of both commits, why they are not told, or None where one did not count it."""
    windows = [_windows(trials, cell, metric) for cell in (each.base, each.head)]
    if all(windows):
        change = change_of(*windows)
        if change is None:
            shown = (" and ".join(map(fmt.count, dict.fromkeys(each))) for each in windows)
            counted = ", ".join(
                f"{words} under {side}" for words, side in zip(shown, _SIDES, strict=True)
            )
            return NotMeasured(
                f"{metric.name} is not told: windows of it do not agree ({counted})."
            )
        before = usual_count(windows[0])
        before = windows[0][0] if before is None else before
        return _Counts(before, before + change)
    before, after = (trials.counted_value(cell, metric) for cell in (each.base, each.head))
    if before is None or after is None or before == after < -metric.least_change:
        return None
    if min(before, after) < -metric.least_change:
        both = _both(before, after)
        return NotMeasured(f"{metric.name} is not told: it comes out below nothing ({both}).")
    return _Counts(before, after)


def _rest(trials: Trials, each: GatePair) -> float:
    """The larger share of a step that is not what the cost model makes of batch and context."""
    metric = METRICS["cost_model_rest"]
    return max(trials.counted_value(cell, metric) or 0.0 for cell in (each.base, each.head))


def _beside(trials: Trials, each: GatePair) -> str:
    """That the commits run different numbers of threads and processes beside what is traced."""
    results = [trials.counted_in(BY_FUNCTION, cell) for cell in (each.base, each.head)]
    numbers = [result.costs.beside if result and result.costs else 0 for result in results]
    if numbers[0] == numbers[1]:
        return ""
    before, after = numbers
    return (
        f"beside the thread that is counted HEAD ran {after} other threads and processes, and BASE "
        f"{before}; what those execute is in no count of bytecodes."
    )


def _windows(trials: Trials, cell: Cell, metric: Metric) -> list[float]:
    """What several windows have counted of a metric; none where it is not counted in such."""
    result = trials.counted_in(metric.mode, cell)
    if result is None or result.costs is None or not metric.counted:
        return []
    return [getattr(each, metric.counted) for each in result.costs.windows.get(metric.when, [])]


def _both(before: float, after: float) -> str:
    return f"{fmt.count(before)} → {fmt.count(after)}"


def different_work(trials: Trials, each: GatePair) -> str:
    """What the commits' trials should have agreed in and do not, or ""."""
    results = [result for cell in each[1:] for result in trials.timings.get(cell, {}).values()]
    results += [result for (_, cell), result in trials.counted.items() if cell in each[1:]]
    whole = [result for result in results if result.mode not in BRIEF]
    base, head = (trials.counted_in("outputs", cell) for cell in (each.base, each.head))
    if base and head and (found := outputs_difference(head, base)):
        return found
    return next((found for result in whole if (found := difference(result, whole[0]))), "")


def unsteady(trials: Trials, each: GatePair) -> bool:
    """Whether equal trials of an exact cell counted differently."""
    return any(
        len(trials.counts.get(cell, ())) > 1 and traits(cell).is_exact
        for cell in (each.base, each.head)
    )


def _not_counted(trials: Trials, each: GatePair) -> Iterator[str]:
    """A sentence for each mode in which one commit gave no result, or both of an exact cell, or in
    which what one of them counted leaves out what the other did not.
    """
    if beside := _beside(trials, each):
        yield f"{each.id}: {beside}"
    modes = (mode for mode in trials.plan.extra_modes if says_something(each.base, mode))
    for mode in modes:
        base, head = (trials.counted_in(mode, cell) for cell in (each.base, each.head))
        if (base is None) != (head is None):
            side = "BASE" if base is None else "HEAD"
            yield f"{each.id}: no result of {side} in mode {mode}."
        elif base is None and traits(each.base).is_exact:
            yield f"{each.id}: no result of either commit in mode {mode}."


def _not_measured(
    trials: Trials,
    each: GatePair,
    exact: Sequence[ExactChange],
    timing: TimingChange | None,
    is_timed: bool,
) -> Iterator[str]:
    yield from _not_counted(trials, each)
    if is_timed and timing is None:
        yield f"{each.id}: fewer than {FEWEST_PAIRS} timed rounds."
    if not exact and (traits(each.base).is_exact or timing is None):
        why = (
            "nothing could be counted"
            if traits(each.base).is_exact
            else "its counts need not repeat, for it has a clock or a second process, and it "
            "was not timed"
        )
        yield f"{each.id}: {why}."


def _otherwise_deployed(counted: Trials, each: GatePair) -> Iterator[str]:
    for side, cell in zip(_SIDES, (each.base, each.head), strict=True):
        trial = counted.counted_in("counts", cell)
        if trial and (words := trial.engine_state.get(NOT_AS_DEPLOYED)):
            yield f"{each.id}, {side}: {words}."


class JudgedCounts(NamedTuple):
    """``missing``: a sentence for each thing that was not measured."""

    cells: list[GateCell]
    missing: list[str]
    notes: list[str]


def judge_pairs(
    pairs: Sequence[GatePair],
    counted: Trials,
    timed: Trials | None,
    timings: Mapping[GatePair, TimingChange],
    command: Callable[[GatePair], str],
    is_interrupted: bool = False,
    waivers: Sequence[Waiver] = (),
    growth: Growth | None = None,
) -> JudgedCounts:
    """What there is to say of each pair; ``timed`` is None where nothing was to be timed.

    ``is_interrupted``: before all was counted and timed that was to be. ``waivers``: by how much
    exact metrics may be worse, and whether outputs may be others; ``growth``: what may be added
    since a release.
    """
    judged = JudgedCounts([], [], [])
    for each in pairs:
        what = different_work(counted, each) or (different_work(timed, each) if timed else "")
        if what and not any(waiver.covers(OUTPUTS, each.id) for waiver in waivers):
            judged.missing.append(
                f"{each.id}: HEAD produces other {what} than BASE; different work has no ratio. "
                f"Where that is meant, {TRAILER}: {OUTPUTS} in the commit's message accepts it."
            )
            continue
        (exact, untold), timing = exact_changes(counted, each, waivers, growth), timings.get(each)
        missing = list(_not_measured(counted, each, exact, timing, timed is not None))
        judged.missing.extend(missing)
        if unsteady(counted, each):
            judged.notes.append(
                f"{each.id}: trials that should count alike did not; collections are left out."
            )
        judged.notes.extend(_unexplained(counted, each))
        judged.notes.extend(_otherwise_deployed(counted, each))
        if growth and (names := growth.untold(each.base)):
            judged.notes.append(
                f"{each.id}: {growth.budget.since} gave no {' and no '.join(names)}, so that "
                "budget was not looked at."
            )
        if exact or timing:
            judged.cells.append(
                GateCell(
                    id=each.id,
                    axes={axis: v for axis, v in values(each.base).items() if axis != "release"},
                    exact=exact,
                    timing=timing,
                    verdict=_verdict(
                        exact, timing, bool(missing) or is_interrupted, is_other_work=bool(what)
                    ),
                    command=command(each),
                    figures=_figures(timed, each) if timed else {},
                    **_left(counted, each),
                    functions=_functions(counted, each, exact),
                    c_functions=c_function_changes(counted, each, exact),
                    untold=untold,
                    other_outputs=what,
                )
            )
    return judged


def _unexplained(counted: Trials, each: GatePair) -> Iterator[str]:
    """That a commit's steps are not what the cost model makes of batch and context."""
    for side, cell in zip(_SIDES, (each.base, each.head), strict=True):
        rest = counted.counted_value(cell, METRICS["cost_model_rest"])
        if rest is not None and rest > _MOST_REST:
            yield (
                f"{each.id}: batch and context explain all but {fmt.percent(rest)} of a step's "
                f"bytecodes under {side}; its parts by batch and context are as uncertain."
            )


def _left(counted: Trials, each: GatePair) -> dict[str, Any]:
    """Who calls the collector and whose bytes grow, of both commits, as a cell's fields."""
    before, after = (counted.counted_in("leaks", cell) for cell in (each.base, each.head))
    return {
        "calls_before": before.collector_calls if before else [],
        "calls_after": after.collector_calls if after else [],
        "growing_before": before.growing_lines if before else [],
        "growing_after": after.growing_lines if after else [],
    }


def _functions(
    counted: Trials, each: GatePair, exact: Sequence[ExactChange]
) -> list[LargestChange]:
    """Functions behind the counts that are worse or better, as the trials that count saw them."""
    changed = {METRICS[change.metric].when for change in exact if change.verdict != "same"}
    before, after = (
        read_side(counted, cell, cell.release, cell.release) for cell in (each.base, each.head)
    )
    if not changed or isinstance(before, NotMeasured) or isinstance(after, NotMeasured):
        return []
    return [found for found in largest_changes(before, after) if found.when in changed]


def _figures(timed: Trials, each: GatePair) -> dict[str, float]:
    figures = {}
    for name in FIGURES:
        rounds = timed.timings[each.head].values()
        samples = [value for result in rounds if (value := result.metrics.get(name)) is not None]
        if samples:
            figures[name] = float(np.median(samples))
    return figures


def _verdict(
    exact: Sequence[ExactChange],
    timing: TimingChange | None,
    is_incomplete: bool,
    *,
    is_other_work: bool = False,
) -> GateVerdict:
    """Time decides where it can; an exact loss counts unless time was won or it is accepted."""
    timed = timing.verdict if timing else None
    found = {change.verdict for change in exact}
    if timed == "worse":
        return "worse"
    if "worse" in found and timed != "better":
        return "trade" if any(map(_is_gain, exact)) else "worse"
    if is_incomplete:
        return "incomplete"
    if is_other_work or ("accepted" in found and timed != "better"):
        return "accepted"
    if timed == "better" or "better" in found:
        return "better"
    return "inconclusive" if timed == "inconclusive" else "same"


def _is_gain(change: ExactChange) -> bool:
    """Whether it can outweigh a loss; one generation's collections are a part of all of them."""
    return change.verdict == "better" and change.metric not in OF_A_GENERATION


def overall(
    cells: Sequence[GateCell], missing: Sequence[str] = (), *, is_covered: bool = True
) -> GateVerdict:
    """The verdict on the commit: its worst cell's, and better only where nothing is worse.

    Where something is missing it is worse, a trade or `incomplete`: what is missing may be worse.
    So may what no cell has run.
    """
    found = {cell.verdict for cell in cells}
    order: tuple[GateVerdict, ...] = ("worse", "trade")
    if loss := next((verdict for verdict in order if verdict in found), None):
        return loss
    if missing or not cells or "incomplete" in found:
        return "incomplete"
    if not is_covered:
        return "not covered"
    order = ("accepted", "better", "inconclusive", "same")
    return next(verdict for verdict in order if verdict in found)
