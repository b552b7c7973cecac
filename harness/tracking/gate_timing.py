"""Host time under two commits, from rounds in which base, head and their controls take turns."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from harness.experiment import Comparison
from harness.outcomes import Trials
from harness.plan import Plan
from harness.statistics import Ratio, holm, paired_ratio
from harness.store import TrialKey
from harness.tracking.gate_plan import DECIDES, Pair
from harness.tracking.gate_result import Cause, TimingChange
from harness.trial import TrialFailure, TrialResult
from harness.verdict import decide

FEWEST_PAIRS = 3

Outcomes = Mapping[TrialKey, TrialResult | TrialFailure]


class Timings(NamedTuple):
    """``comparisons`` of all pairs, control after control; ``by_pair`` the same by pair."""

    comparisons: list[Comparison]
    by_pair: dict[Pair, TimingChange]


def compare_timings(pairs: Sequence[Pair], plan: Plan, outcomes: Outcomes) -> Timings:
    """What the timing rounds say so far; a pair with too few of them is left out."""
    trials = Trials(plan, outcomes)
    logs = {each: found for each in pairs if len(found := _logs(trials, each)) >= FEWEST_PAIRS}
    if not logs:
        return Timings([], {})
    # Default and control arm both decide, so they are one family; the collector's part does not.
    arms = [_ratio(found[:, arm], 2 * len(logs)) for found in logs.values() for arm in (0, 1)]
    compared = _compared(arms, plan.tolerance)
    by_pair = {}
    for number, (each, found) in enumerate(logs.items()):
        default, control = compared[2 * number : 2 * number + 2]
        parts = [_ratio(found[:, 0] - found[:, 1], 1)]
        (collector,) = _compared(parts, plan.tolerance)
        before, after = (
            float(np.median([_host_seconds(result) for result in trials.timings[cell].values()]))
            for cell in (each.base, each.head)
        )
        by_pair[each] = TimingChange(
            before=before,
            after=after,
            comparison=default,
            control=control,
            collector=collector,
            cause=_cause(default, control, collector),
        )
    return Timings(compared, by_pair)


def _logs(trials: Trials, each: Pair) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Log ratio head / base by round, with the collector and without: ``[rounds, 2]``."""
    results = [trials.timings[cell] for cell in each[1:]]
    complete = sorted(set.intersection(*(set(found) for found in results)))
    base, head, base_control, head_control = results
    logs = [
        (_log_ratio(base[n], head[n]), _log_ratio(base_control[n], head_control[n]))
        for n in complete
    ]
    return np.array(logs, dtype=np.float64).reshape(-1, 2)


def _log_ratio(base: TrialResult, head: TrialResult) -> float:
    """Of host times: the median over slices, each beside the other's; else of the whole.

    Commits that need different numbers of steps for the same work have no slices in common.
    """
    ours, theirs = (np.array(result.slice_host_seconds) for result in (base, head))
    if len(ours) and len(ours) == len(theirs):
        return float(np.median(np.log(theirs / ours)))
    before, after = (
        (result.metrics[DECIDES] or np.nan) * (result.metrics["num_steps"] or np.nan)
        for result in (base, head)
    )
    return float(np.log(after / before))


def _host_seconds(result: TrialResult) -> float:
    """Host time of a step: of the middle slice, which no full pass and no burst has hit."""
    whole = result.metrics[DECIDES]
    if result.slice_host_seconds:
        return float(np.median(result.slice_host_seconds))
    return np.nan if whole is None else whole


def _ratio(logs: np.ndarray[tuple[int], np.dtype[np.float64]], family: int) -> Ratio:
    return paired_ratio(np.ones(len(logs)), np.exp(logs), family)


def _compared(ratios: list[Ratio], tolerance: float) -> list[Comparison]:
    verdicts = decide(ratios, "lower", tolerance)
    adjusted = holm([ratio.p for ratio in ratios])
    return [
        Comparison(
            metric=DECIDES,
            baseline="base",
            candidate="head",
            ratio=ratio.ratio,
            ci95=ratio.ci95,
            verdict=verdict,
            p_adjusted=p,
            mde=ratio.mde,
            rounds=ratio.rounds,
        )
        for ratio, verdict, p in zip(ratios, verdicts, adjusted, strict=True)
    ]


def _cause(default: Comparison, control: Comparison, collector: Comparison) -> Cause:
    moved = [each.verdict in ("better", "worse") for each in (default, control, collector)]
    if not any(moved[:2]):
        return ""
    if moved[1] and moved[2]:
        return "both"
    if moved[1]:
        return "code"
    return "collector" if moved[2] else "untold"
