"""Host time under two commits, from rounds in which they take turns; and whose doing it is."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from harness.axes import Cell
from harness.experiment.comparisons import comparisons
from harness.experiment.outcomes import Trials
from harness.experiment.plan import Plan
from harness.experiment.result import Comparison
from harness.experiment.store import TrialKey
from harness.statistics.paired_ratio import FEWEST_PAIRS, paired_ratio
from harness.tracking.gate.plan import DECIDES, Pair
from harness.tracking.gate.result import Attribution, TimingChange
from harness.trial.spec import TrialFailure, TrialResult

Outcomes = Mapping[TrialKey, TrialResult | TrialFailure]


class Timings(NamedTuple):
    """``comparisons``: those of ``by_pair``, for whoever asks how precise they are."""

    comparisons: list[Comparison]
    by_pair: dict[Pair, TimingChange]


def compare_timings(pairs: Sequence[Pair], plan: Plan, outcomes: Outcomes) -> Timings:
    """What the timing rounds say so far; a pair with too few of them is left out."""
    trials = Trials(plan, outcomes)
    logs = {each: _logs(trials, each.base, each.head) for each in pairs}
    logs = {each: found for each, found in logs.items() if len(found) >= FEWEST_PAIRS}
    compared = _compared(list(logs.values()), plan.tolerance)
    by_pair = {}
    for each, comparison in zip(logs, compared, strict=True):
        before, after = (
            float(np.median([_host_seconds(result) for result in trials.timings[cell].values()]))
            for cell in (each.base, each.head)
        )
        by_pair[each] = TimingChange(before=before, after=after, comparison=comparison)
    return Timings(compared, by_pair)


def has_changed(comparison: Comparison) -> bool:
    """Whether a comparison says better or worse."""
    return comparison.verdict in ("better", "worse")


class Attributions(NamedTuple):
    """``comparisons``: with the collector and without it, pair after pair."""

    comparisons: list[Comparison]
    by_pair: dict[Pair, Attribution]


def attribute(pairs: Sequence[Pair], plan: Plan, outcomes: Outcomes) -> Attributions:
    """Whose doing it is, from rounds with controls; a pair with too few of them is left out."""
    trials = Trials(plan, outcomes)
    attributions = Attributions([], {})
    for each in pairs:
        base, head, base_control, head_control = each[1:]
        change, control = _logs(trials, base, head), _logs(trials, base_control, head_control)
        without = _logs(trials, base, base_control)
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
        attributions.by_pair[each] = Attribution(
            control=compared[1],
            code=compared[2],
            collector=compared[3],
            cause=_cause(*compared[2:]),
        )
    return attributions


def _cause(
    code: Comparison, collector: Comparison
) -> Literal["collector", "code", "both", "untold"]:
    if has_changed(code):
        return "both" if has_changed(collector) else "code"
    return "collector" if has_changed(collector) else "untold"


def _logs(trials: Trials, base: Cell, head: Cell) -> dict[int, float]:
    """Log ratio head / base by round."""
    ours, theirs = trials.timings[base], trials.timings[head]
    return {n: _log_ratio(ours[n], theirs[n]) for n in sorted(ours.keys() & theirs.keys())}


def _log_ratio(base: TrialResult, head: TrialResult) -> float:
    """Of host times: over slices, each beside the other's; else of the whole.

    Commits that need different numbers of steps for the same work have no slices in common.
    """
    ours, theirs = (np.array(result.slice_host_seconds) for result in (base, head))
    if len(ours) and len(ours) == len(theirs):
        return _hodges_lehmann(np.log(theirs / ours))
    before, after = (
        (result.metrics[DECIDES] or np.nan) * (result.metrics["num_steps"] or np.nan)
        for result in (base, head)
    )
    return float(np.log(after / before))


def _hodges_lehmann(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """The median of all means of two: as steady as a mean, and bursts in a quarter do not move it.

    Hodges and Lehmann (1963).
    """
    first, second = np.triu_indices(len(x))
    return float(np.median((x[first] + x[second]) / 2))


def _host_seconds(result: TrialResult) -> float:
    """Host time of a step: of the middle slice, which no full pass and no burst has hit."""
    whole = result.metrics[DECIDES]
    if result.slice_host_seconds:
        return float(np.median(result.slice_host_seconds))
    return np.nan if whole is None else whole


def _compared(family: Sequence[dict[int, float]], tolerance: float) -> list[Comparison]:
    """Comparisons of one family, each from its log ratios by round."""
    ratios = []
    for by_round in family:
        logs = np.array(list(by_round.values()))
        ratios.append(paired_ratio(np.ones(len(logs)), np.exp(logs), len(family)))
    names = [("base", "head")] * len(ratios)
    return comparisons(DECIDES, names, ratios, "lower", tolerance)
