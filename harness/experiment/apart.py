"""A ratio in two parts: what the code takes, young collections included, and full passes.

A full pass over a large heap can take a third of a trial, and a trial has one or none, so two
trials differ by who had one. Without them rounds are alike; what they add is their mean over all
trials of a cell, with an error of its own. Both errors make the interval of the whole.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.experiment.result import Apart, ChangePart, FullPasses
from harness.metrics import Metric
from harness.statistics.mixture import FloatArray
from harness.statistics.paired_ratio import Ratio, minimum_detectable_effect, paired_ratio
from harness.trial.spec import TrialResult


class WholeRatio(NamedTuple):
    """The ratio, and its parts where either cell has had full passes."""

    ratio: Ratio
    apart: Apart | None


def ratio_in_parts(
    metric: Metric,
    rounds: Sequence[tuple[TrialResult, TrialResult]],
    baseline: Sequence[TrialResult],
    candidate: Sequence[TrialResult],
    family: int,
) -> WholeRatio:
    """Candidate over baseline: ``rounds`` are pairs of theirs, the others all trials of each.

    ``metric`` is one with `Metric.full_passes`. Raises ValueError as `paired_ratio`.
    """
    before, after = ([_code(metric, both[side]) for both in rounds] for side in (0, 1))
    code = paired_ratio(before, after, family)
    passes = _full_passes(metric, baseline), _full_passes(metric, candidate)
    if not any(each.count for each in passes):
        return WholeRatio(code, None)
    added = [_added(metric, results) for results in (baseline, candidate)]
    longer = float(np.log1p(added[1].mean()) - np.log1p(added[0].mean()))
    errors = [float(np.std(each, ddof=1) / (1 + each.mean())) / len(each) ** 0.5 for each in added]
    ratio = _with_error(code, longer if metric.direction == "lower" else -longer, errors, family)
    return WholeRatio(
        ratio, Apart(code=ChangePart(code.ratio, code.ci95, code.mde), full_passes=passes)
    )


def _with_error(code: Ratio, log_change: float, errors: Sequence[float], family: int) -> Ratio:
    """The code's ratio times another, whose logarithm is the sum of means with these errors."""
    from scipy.special import stdtr, stdtrit

    freedom = code.rounds - 1
    reach = float(stdtrit(freedom, 0.975))
    low, high = np.log(code.ci95)
    error = math.hypot((high - low) / 2 / reach, *errors)
    log_ratio = math.log(code.ratio) + log_change
    sd_log = error * code.rounds**0.5
    return Ratio(
        ratio=math.exp(log_ratio),
        ci95=(math.exp(log_ratio - reach * error), math.exp(log_ratio + reach * error)),
        p=2 * float(stdtr(freedom, -abs(log_ratio) / error)) if error else float(not log_ratio),
        mde=minimum_detectable_effect(sd_log, code.rounds, family),
        sd_log=sd_log,
        rounds=code.rounds,
    )


def _share(metric: Metric, result: TrialResult) -> float:
    """Full passes' share of the time that the metric is made of; 0 where they were not watched."""
    return result.metrics.get(metric.full_passes) or 0.0


def _code(metric: Metric, result: TrialResult) -> float:
    """The metric as it were without full passes; NaN where the trial has none."""
    value = result.metrics.get(metric.name)
    if value is None:
        return math.nan
    rest = 1 - _share(metric, result)
    return value * rest if metric.direction == "lower" else value / rest


def _added(metric: Metric, results: Sequence[TrialResult]) -> FloatArray:
    """What full passes add to the rest of the time, relative, in each trial."""
    shares = np.array([_share(metric, result) for result in results])
    return np.asarray(shares / (1 - shares))


def _full_passes(metric: Metric, results: Sequence[TrialResult]) -> FullPasses:
    """Those of the process that serves the requests."""
    engines = [each for result in results for each in result.processes if each.role == "engine"]
    count = sum(each.collections[2] for each in engines)
    seconds = sum(each.pause_seconds[2] for each in engines)
    return FullPasses(
        count=count,
        trials=len(results),
        seconds=seconds / count if count else 0.0,
        added=float(_added(metric, results).mean()),
    )
