"""Host time under two commits, from rounds in which they take turns; and whose doing it is."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from harness.axes import Cell
from harness.experiment.comparisons import comparisons
from harness.experiment.outcomes import Trials
from harness.experiment.plan import Plan
from harness.experiment.result import Comparison
from harness.experiment.store import TrialKey
from harness.metrics import METRICS
from harness.statistics.mixture import FloatArray
from harness.statistics.paired_ratio import FEWEST_PAIRS, Estimate, Ratio, holm, paired_ratio
from harness.statistics.stalls import Stalls, compare_stalls
from harness.tracking.gate.plan import DECIDES, TURN_STEPS, GatePair
from harness.tracking.gate.result import CauseOfChange, RequestChange, StallChange, TimingChange
from harness.trial.spec import TrialFailure, TrialResult

TrialOutcomes = Mapping[TrialKey, TrialResult | TrialFailure]


class Timings(NamedTuple):
    """``comparisons``: those that more rounds could still tell more of; ``by_pair`` has all."""

    comparisons: list[Estimate]
    by_pair: dict[GatePair, TimingChange]


class _Undecided(NamedTuple):
    """An estimate that more rounds are asked for, however narrow it is."""

    ratio: float = 1.0
    ci95: tuple[float, float] = (-np.inf, np.inf)
    rounds: int = 0


_UNDECIDED = _Undecided()

FELT = ("request_throughput", "ttft_median", "cpu_per_request")
"""What requests feel and cost, whichever call, thread or process takes the time."""

LogRatio = Callable[[TrialResult, TrialResult], float]
"""Of one round: log of the second trial's host time over the first's."""


def compare_timings(pairs: Sequence[GatePair], plan: Plan, outcomes: TrialOutcomes) -> Timings:
    """What the timing rounds say so far; a pair with too few of them is left out.

    Usual steps, means, stalls and what requests feel of all pairs are one family.
    """
    trials = Trials(plan, outcomes)
    pairs = [each for each in pairs if len(_rounds(trials, each.base, each.head)) >= FEWEST_PAIRS]
    kinds: tuple[LogRatio, ...] = (_steady, _mean)
    ratios = [
        _ratio(_logs(trials, each.base, each.head, kind), 3 * len(pairs))
        for kind in kinds
        for each in pairs
    ]
    stalls = [_stalls(trials, each) for each in pairs]
    felt = [
        (metric, each, found)
        for metric in FELT
        for each in pairs
        if (found := _felt(trials, each, metric))
    ]
    p_values = [each.p for each in ratios] + [each.p if each else 1.0 for each in stalls]
    p_values += [ratio.p for _, _, (_, ratio) in felt]
    compared = comparisons(
        DECIDES,
        [("base", "head")] * len(ratios),
        ratios,
        "lower",
        plan.tolerance,
        also=p_values[len(ratios) :],
    )
    adjusted = holm(p_values)[len(ratios) :]
    requests = _requests(felt, p_values[: -len(felt) or None], plan.tolerance)
    timings = Timings([], {})
    for n, each in enumerate(pairs):
        steady, mean = compared[n], compared[len(pairs) + n]
        stalled = stalls[n]
        change = _stall_change(stalled, adjusted[n], plan.tolerance) if stalled else None
        of_base = [base for base, _ in _rounds(trials, each.base, each.head).values()]
        before, mean_before = (
            float(np.median([seconds(result) for result in of_base]))
            for seconds in (_usual_seconds, _mean_seconds)
        )
        timings.by_pair[each] = TimingChange(
            before=before,
            after=before * steady.ratio,
            steady=steady,
            mean_before=mean_before,
            mean_after=mean_before * mean.ratio,
            mean=mean,
            stalls=change,
            requests=requests.get(each, []),
        )
        timings.comparisons.append(steady)
        timings.comparisons.extend(
            _UNDECIDED for one in (mean, change) if one and one.verdict == "inconclusive"
        )
    return timings


GUARD_ROUNDS = 4
_LONGER = 1.1
"""Equal commits that take turns stay within a few per cent of each other, on a busy machine too."""


class Slower(NamedTuple):
    """``comparisons``: an undecided one for each pair of which more rounds could tell that HEAD
    takes no longer; ``by_id``: why there is no verdict on a pair, as things stand.
    """

    comparisons: list[Estimate]
    by_id: dict[str, str]


def slower(pairs: Sequence[GatePair], plan: Plan, outcomes: TrialOutcomes) -> Slower:
    """Pairs of which counts do not tell all: HEAD's steps, or all that its requests ask for,
    took a tenth longer in each round. Or too few rounds are there to tell.
    """
    trials = Trials(plan, outcomes)
    found = Slower([], {})
    for each in pairs:
        rounds = _rounds(trials, each.base, each.head).values()
        ratios = {
            what: [float(np.exp(kind(*both))) for both in rounds]
            for what, kind in _TAKES_LONGER.items()
        }
        longer = [
            (what, ratio) for what, ratio in ratios.items() if all(one >= _LONGER for one in ratio)
        ]
        if longer and len(rounds) < GUARD_ROUNDS:
            found.comparisons.append(_UNDECIDED)
            why = f"fewer than {GUARD_ROUNDS} rounds tell whether HEAD took longer."
            found.by_id[each.id] = why
        elif longer:
            what, ratio = longer[0]
            found.by_id[each.id] = (
                f"HEAD's {what} took {min(ratio):.2f} times as long as BASE's or more, in "
                f"each of {len(rounds)} rounds, which the counts do not explain; leave "
                "--exact-only out to judge times, or give --instructions to count what C "
                "executes."
            )
    return found


class _Felt(NamedTuple):
    """Median of a metric of BASE over rounds, and HEAD's over it."""

    before: float
    ratio: Ratio


def _felt(trials: Trials, each: GatePair, metric: str) -> _Felt | None:
    """None where too few rounds have the metric."""
    rounds = _rounds(trials, each.base, each.head).values()
    samples = [[result.metrics.get(metric) for result in both] for both in rounds]
    known = [both for both in samples if all(both)]
    if len(known) < FEWEST_PAIRS:
        return None
    before, after = np.array(known, np.float64).T
    return _Felt(float(np.median(before)), paired_ratio(before, after))


def _requests(
    felt: Sequence[tuple[str, GatePair, _Felt]], others: Sequence[float], tolerance: float
) -> dict[GatePair, list[RequestChange]]:
    """By pair; ``others``: p-values of the family's other members."""
    found: dict[GatePair, list[RequestChange]] = {}
    for metric in FELT:
        mine = [(each, one) for name, each, one in felt if name == metric]
        also = [*others, *(one.ratio.p for name, _, one in felt if name != metric)]
        names = [("base", "head")] * len(mine)
        ratios = [one.ratio for _, one in mine]
        direction = METRICS[metric].direction
        assert direction != "neither"
        compared = comparisons(metric, names, ratios, direction, tolerance, also) if mine else []
        for (each, one), change in zip(mine, compared, strict=True):
            found.setdefault(each, []).append(
                RequestChange(before=one.before, after=one.before * change.ratio, change=change)
            )
    return found


def has_changed(comparison: Comparison) -> bool:
    """Whether a comparison says better or worse."""
    return comparison.verdict in ("better", "worse")


def changed(timing: TimingChange) -> LogRatio | None:
    """What of a usual step or else of the mean has changed, if either has."""
    if has_changed(timing.steady):
        return _steady
    return _mean if has_changed(timing.mean) else None


class Attributions(NamedTuple):
    """``comparisons``: with the collector and without it, pair after pair."""

    comparisons: list[Comparison]
    by_pair: dict[GatePair, CauseOfChange]


def attribute_changes(
    kinds: Mapping[GatePair, LogRatio], plan: Plan, outcomes: TrialOutcomes
) -> Attributions:
    """Whose doing it is, from rounds with controls; a pair with too few of them is left out.

    ``kinds``: what has changed of each pair, as `changed` has it.
    """
    trials = Trials(plan, outcomes)
    attributions = Attributions([], {})
    for each, kind in kinds.items():
        base, head, base_control, head_control = each[1:]
        change = _logs(trials, base, head, kind)
        control = _logs(trials, base_control, head_control, kind)
        without = _logs(trials, base, base_control, kind)
        rounds = sorted(change.keys() & control.keys() & without.keys())
        if len(rounds) < FEWEST_PAIRS:
            continue
        # Of the base's time. A ratio of ratios would not do: code that grows by a tenth beside
        # a collector that costs what it did makes the collector's share smaller, not cheaper.
        code = {n: np.exp(without[n]) * np.expm1(control[n]) for n in rounds}
        collector = {n: np.log(np.exp(change[n]) - code[n]) for n in rounds}
        parts = (change, control, {n: np.log1p(code[n]) for n in rounds}, collector)
        compared = [_compared([logs], plan.tolerance)[0] for logs in parts]
        attributions.comparisons.extend(compared[:2])
        attributions.by_pair[each] = CauseOfChange(
            control=compared[1],
            code=compared[2],
            collector=compared[3],
            cause=cause_of(compared[0], *compared[2:]),
        )
    return attributions


def cause_of(
    change: Comparison, code: Comparison, collector: Comparison
) -> Literal["collector", "code", "both", "untold"]:
    """Whose doing a change is: what has changed the same way, and both where both have changed.

    A part that has changed the other way alone does not cause it.
    """
    if has_changed(code) and has_changed(collector):
        return "both"
    if has_changed(code) and (code.ratio > 1) == (change.ratio > 1):
        return "code"
    if has_changed(collector) and (collector.ratio > 1) == (change.ratio > 1):
        return "collector"
    return "untold"


def _rounds(trials: Trials, base: Cell, head: Cell) -> dict[int, tuple[TrialResult, TrialResult]]:
    """Those that both have, in order."""
    ours, theirs = trials.timings[base], trials.timings[head]
    return {n: (ours[n], theirs[n]) for n in sorted(ours.keys() & theirs.keys())}


def _logs(trials: Trials, base: Cell, head: Cell, kind: LogRatio) -> dict[int, float]:
    """Log ratio head / base by round."""
    return {n: kind(*both) for n, both in _rounds(trials, base, head).items()}


def _steady(base: TrialResult, head: TrialResult) -> float:
    """Over slices, each beside the other's; else of the whole.

    Commits that need different numbers of steps for the same work have no slices in common.
    """
    ours, theirs = _slices(base), _slices(head)
    if len(ours) and len(ours) == len(theirs):
        return _hodges_lehmann(np.log(theirs / ours))
    return _mean(base, head)


def _mean(base: TrialResult, head: TrialResult) -> float:
    """Of all the host time that the same work took."""
    before, after = (
        _mean_seconds(result) * (result.metrics["num_steps"] or np.nan) for result in (base, head)
    )
    return float(np.log(after / before))


def _cpu(base: TrialResult, head: TrialResult) -> float:
    """Of CPU time, which calls beside the steps take, too, and other programs do not."""
    before, after = (each.metrics.get("cpu_per_request") or np.nan for each in (base, head))
    return float(np.log(after / before))


_TAKES_LONGER: dict[str, LogRatio] = {"steps": _mean, "requests": _cpu}


def _hodges_lehmann(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """The median of all means of two: as steady as a mean, and bursts in a quarter do not move it.

    Hodges and Lehmann (1963).
    """
    first, second = np.triu_indices(len(x))
    return float(np.median((x[first] + x[second]) / 2))


def _slices(result: TrialResult) -> FloatArray:
    """Mean host seconds of a step in each slice, a rest left out."""
    steps = np.array(result.step_host_ns)
    whole = steps[: len(steps) // TURN_STEPS * TURN_STEPS].reshape(-1, TURN_STEPS)
    return np.asarray(whole.mean(axis=1) / 1e9)


def _usual_seconds(result: TrialResult) -> float:
    """Host time of a step: of the middle slice, which no full pass and no burst has hit."""
    slices = _slices(result)
    return float(np.median(slices)) if len(slices) else _mean_seconds(result)


def _mean_seconds(result: TrialResult) -> float:
    mean = result.metrics[DECIDES]
    return np.nan if mean is None else mean


def _stalls(trials: Trials, each: GatePair) -> Stalls | None:
    """None where the two took no turns, and steps are not known."""
    rounds = [
        (np.array(base.step_host_ns) / 1e9, np.array(head.step_host_ns) / 1e9)
        for base, head in _rounds(trials, each.base, each.head).values()
        if base.step_host_ns and head.step_host_ns
    ]
    return compare_stalls(rounds, TURN_STEPS) if rounds else None


def _stall_change(found: Stalls, p_adjusted: float, tolerance: float) -> StallChange:
    low, high = found.ci95
    return StallChange(
        before=found.before,
        after=found.after,
        longest_before=found.longest_before,
        longest_after=found.longest_after,
        steps=found.steps,
        rounds=found.rounds,
        ratio=1 + found.share,
        ci95=(1 + low, 1 + high),
        p_adjusted=p_adjusted,
        verdict=found.verdict(p_adjusted, tolerance),
    )


def _ratio(by_round: Mapping[int, float], family: int) -> Ratio:
    logs = np.array(list(by_round.values()))
    return paired_ratio(np.ones(len(logs)), np.exp(logs), family)


def _compared(family: Sequence[dict[int, float]], tolerance: float) -> list[Comparison]:
    """Comparisons of one family, each from its log ratios by round."""
    ratios = [_ratio(by_round, len(family)) for by_round in family]
    return comparisons(DECIDES, [("base", "head")] * len(ratios), ratios, "lower", tolerance)
