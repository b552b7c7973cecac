"""A change composed of what the code takes, young collections included, and of full passes.

A window has one full pass or none, which can take a third of it: what two windows happened to have
says little of what serving goes on to cost. How often full passes come is counted over thousands of
steps (`LongRun`), what one takes is the mean over all cells with such a heap, and the rest of the
time is compared round by round. Then a change is ``r (1 + x') / (1 + x)``, with the ratio ``r`` of
the rest and what full passes add to it in both cells; an error of the pass's cost, common to both,
cancels as far as both add the same. Where nothing counted them, they add their mean over windows,
which open anywhere between two passes.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from harness.experiment.result import Apart, ChangePart, FullPasses, StepParts
from harness.metrics import METRICS, Metric
from harness.statistics.mixture import FloatArray
from harness.statistics.paired_ratio import ALPHA, POWER, Ratio, paired_ratio
from harness.statistics.robust_location import LEAST_P, likelihood_ratio, reference
from harness.trial.long_run import LongRun
from harness.trial.spec import TrialResult

_OF_HOST = "gc_full_pass_host_share"

_LEAST_OFF = 2.0
_SURELY_OFF = 3.3
_NEAR = 0.15
"""Passes of the windows contradict the long run where they are more than 2, 3.3 standard errors and
15 % away from what it says: with a device whose steps take time the batches are not quite those of
one that takes none."""

_HALVINGS = 12
"""Until the share of a ratio that is the code's is known to a four-thousandth."""


class PassCost(NamedTuple):
    """Seconds that a full pass takes, and their standard error."""

    seconds: float
    error: float


class CellTrials(NamedTuple):
    """All timed trials of a cell, how often it has full passes, and what one takes.

    ``costs``: by the metric that says what share of a time full passes are: of that time.
    """

    results: Sequence[TrialResult]
    long_run: LongRun | None = None
    costs: Mapping[str, PassCost] = {}

    def cost(self, metric: Metric) -> PassCost | None:
        """By the metric's clock."""
        return self.costs.get(metric.full_passes)


class WholeRatio(NamedTuple):
    """The ratio, and its parts where either cell has full passes."""

    ratio: Ratio
    apart: Apart | None


class _Added(NamedTuple):
    """What full passes add to the rest of the time, relative.

    ``error``: of log(1 + ``share``), but for what the two others make: standard errors of the
    logarithms of the pass's cost and of the rest of the time.
    """

    share: float
    error: float
    of_cost: float = 0.0
    of_code: float = 0.0

    @property
    def slope(self) -> float:
        """Of log(1 + share) by the logarithm of a factor of ``share``."""
        return self.share / (1 + self.share)


class _Code(NamedTuple):
    """Samples without full passes of baseline and candidate, round by round."""

    before: FloatArray
    after: FloatArray
    ratio: Ratio
    family: int

    def p_of(self, log_ratio: float) -> float:
        """The p-value if they were as spread as they are about another ratio."""
        logs = np.log(self.after / self.before) - math.log(self.ratio.ratio) + log_ratio
        return reference(logs.size).p_value(float(likelihood_ratio(logs)))

    def p_beside(self, log_ratio: float, of_code: float, others: float) -> float:
        """The p-value of a ratio whose log has ``of_code`` of theirs, and an error of others.

        Each takes so much of it, at right angles, that it is as unlikely as the other.
        """
        from scipy.special import stdtr

        if not others:
            return self.p_of(log_ratio / of_code)

        def p_of_others(share: float) -> float:
            rest = abs(log_ratio) * math.sqrt(1 - share**2)
            return max(LEAST_P, 2 * float(stdtr(self.ratio.rounds - 1, -rest / others)))

        least, most = 0.0, 1.0
        for _ in range(_HALVINGS):
            share = (least + most) / 2
            if self.p_of(share * log_ratio / of_code) > p_of_others(share):
                least = share
            else:
                most = share
        return min(self.p_of(least * log_ratio / of_code), p_of_others(most))


def pass_costs(results: Sequence[TrialResult]) -> dict[str, PassCost]:
    """What a full pass takes in trials with like heaps, by each clock: see `CellTrials.costs`.

    Where no window had one: the passes with which windows open, over what is not frozen.
    """
    by_clock = {each.full_passes: each for each in METRICS.values() if each.full_passes}
    costs = {name: _pass_cost(metric, results) for name, metric in by_clock.items()}
    return {name: cost for name, cost in costs.items() if cost}


def _pass_cost(metric: Metric, results: Sequence[TrialResult]) -> PassCost | None:
    counts = np.array([_count(each) for each in results], np.float64)
    took = np.array([_share(metric, each) * _window(metric, each) for each in results])
    if counts.sum() and took.sum():
        mean = float(took.sum() / counts.sum())
        rest = took - mean * counts
        error = math.sqrt(float((rest**2).sum())) / float(counts.sum())
        return PassCost(mean, error if np.count_nonzero(counts) > 1 else mean)
    opening = [seconds for each in results if (seconds := _opening_seconds(each))]
    return PassCost(float(np.mean(opening)), float(np.std(opening))) if opening else None


def composed_ratio(
    metric: Metric,
    rounds: Sequence[tuple[TrialResult, TrialResult]],
    baseline: CellTrials,
    candidate: CellTrials,
    family: int,
) -> WholeRatio:
    """Candidate over baseline: ``rounds`` are pairs of theirs.

    ``metric`` is one with `Metric.full_passes`. Raises ValueError as `paired_ratio`.
    """
    before, after = (np.array([_code(metric, both[side]) for both in rounds]) for side in (0, 1))
    code = paired_ratio(before, after, family)
    is_time = metric.direction == "lower"
    of_time = code.ratio if is_time else 1 / code.ratio
    added = _added(metric, baseline, 1.0, baseline), _added(metric, candidate, of_time, baseline)
    if not any(each.share for each in added):
        return WholeRatio(code, None)
    same_cost = baseline.cost(metric) == candidate.cost(metric)
    samples = _Code(before, after, code, family)
    ratio = _whole(samples, added, same_cost=same_cost, is_time=is_time)
    before_passes, after_passes = (
        _full_passes(metric, side, each.share)
        for side, each in zip((baseline, candidate), added, strict=True)
    )
    part = ChangePart(code.ratio, code.ci95, code.mde)
    return WholeRatio(ratio, Apart(code=part, full_passes=(before_passes, after_passes)))


def long_run_value(metric: Metric, side: CellTrials) -> float | None:
    """The metric as it is in the long run; None where nothing tells."""
    code = [value for each in side.results if not math.isnan(value := _code(metric, each))]
    if not (metric.full_passes and code and side.long_run and side.cost(metric)):
        return None
    whole = 1 + _added(metric, side, 1.0, side).share
    median = float(np.median(code))
    return median * whole if metric.direction == "lower" else median / whole


def step_parts(side: CellTrials) -> StepParts | None:
    """What a step's host time is spent on; None where no trial has told."""
    host = METRICS["host_time_per_step"]
    known = [each for each in side.results if each.metrics.get(host.name)]
    if not known:
        return None
    codes = [_code(host, each) for each in known]
    young = float(np.median([_young_seconds(each) for each in known]))
    code = float(np.median(codes))
    added = _added(host, side, 1.0, side).share
    return StepParts(code=max(0.0, code - young), young=young, full=code * added)


def contradicts(passes: FullPasses) -> bool:
    """Whether the passes of the windows are not those of the long run."""
    if passes.per_serving is None:
        return False
    expected = passes.per_serving * passes.trials
    part = passes.per_serving % 1
    off = abs(passes.count - expected)
    spread = math.sqrt(passes.trials * part * (1 - part))
    return off > max(_LEAST_OFF, _SURELY_OFF * spread, _NEAR * expected)


def _added(metric: Metric, side: CellTrials, of_time: float, baseline: CellTrials) -> _Added:
    """``of_time``: the rest of a serving's time over that of the baseline, where it is composed."""
    codes = _code_seconds(metric, baseline.results)
    mine = _code_seconds(metric, side.results)
    cost = side.cost(metric)
    if not (side.long_run and cost and len(codes) and len(mine)):
        added = np.array([_window_share(metric, each) for each in side.results])
        spread = float(np.std(added, ddof=1)) if len(added) > 1 else 0.0
        return _Added(float(added.mean()), spread / (1 + float(added.mean())) / len(added) ** 0.5)
    units = _units(metric, side.results) / _units(metric, baseline.results)
    code = float(np.median(codes)) * of_time * units
    rate = side.long_run.passes_per_serving
    share = rate * cost.seconds / code
    least = side.long_run.error * cost.seconds / code / (1 + share)
    logs = np.log(codes)
    spread = 1.4826 * float(np.median(np.abs(logs - np.median(logs))))
    return _Added(share, least, cost.error / cost.seconds, 1.2533 * spread / len(codes) ** 0.5)


def _whole(code: _Code, added: tuple[_Added, _Added], *, same_cost: bool, is_time: bool) -> Ratio:
    """The code's ratio times what full passes add in the candidate over that in the baseline.

    The error of each factor counts as often as its logarithm is in that of the whole. The code's
    samples have accidents, and its interval is as wide as these make it; what full passes add is a
    mean of many, with an interval by Student's t.
    """
    from scipy.special import stdtrit

    before, after = added
    own = code.ratio
    more = after.slope - before.slope
    of_cost = (
        [more * before.of_cost]
        if same_cost
        else [before.slope * before.of_cost, after.slope * after.of_cost]
    )
    of_code = 1 - after.slope if after.of_code else 1.0
    others = math.hypot(more * before.of_code, before.error, after.error, *of_cost)
    change = math.log1p(after.share) - math.log1p(before.share)
    log_ratio = math.log(own.ratio) + (change if is_time else -change)
    beside = float(stdtrit(own.rounds - 1, 0.975)) * others
    below, above = (math.hypot(of_code * math.log(each / own.ratio), beside) for each in own.ci95)
    of_level = stdtrit(own.rounds - 1, [1 - ALPHA / code.family / 2, POWER])
    detected = math.hypot(of_code * math.log1p(own.mde), float(of_level.sum()) * others)
    return Ratio(
        ratio=math.exp(log_ratio),
        ci95=(math.exp(log_ratio - below), math.exp(log_ratio + above)),
        p=code.p_beside(log_ratio, of_code, others),
        mde=math.expm1(detected),
        sd_log=math.hypot(of_code * own.sd_log, others * math.sqrt(own.rounds)),
        rounds=own.rounds,
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


def _window_share(metric: Metric, result: TrialResult) -> float:
    """What full passes add to the rest of the time of a window, relative."""
    share = _share(metric, result)
    return share / (1 - share)


def _young_seconds(result: TrialResult) -> float:
    """In collections of the young generations, per step, by the clock of host time."""
    engines = [each for each in result.processes if each.role == "engine"]
    on_core = result.waited_share is not None
    pauses = [each.pause_cpu_seconds if on_core else each.pause_seconds for each in engines]
    seconds = sum(sum(each[:2]) for each in pauses)
    return seconds / max(1.0, result.metrics.get("num_steps") or 1.0)


def _window(metric: Metric, result: TrialResult) -> float:
    """Seconds of a window by the metric's clock, full passes included; 0 where not known."""
    if metric.full_passes != _OF_HOST:
        return result.window_seconds
    host = result.metrics.get("host_time_per_step") or 0.0
    return host * (result.metrics.get("num_steps") or 0.0)


def _rest_seconds(metric: Metric, result: TrialResult) -> float:
    """The same without full passes."""
    return _window(metric, result) * (1 - _share(metric, result))


def _code_seconds(metric: Metric, results: Iterable[TrialResult]) -> FloatArray:
    """Of each window that is known."""
    return np.array([found for each in results if (found := _rest_seconds(metric, each))])


def _units(metric: Metric, results: Iterable[TrialResult]) -> float:
    """How many of what the metric counts by, such as steps, a serving has."""
    return float(
        np.median(
            [
                seconds / (code if metric.direction == "lower" else 1 / code)
                for each in results
                if (seconds := _rest_seconds(metric, each))
                and not math.isnan(code := _code(metric, each))
            ]
        )
    )


def _count(result: TrialResult) -> int:
    """Full passes of the process that serves the requests."""
    return sum(each.collections[2] for each in result.processes if each.role == "engine")


def _opening_seconds(result: TrialResult) -> float:
    """Of the pass before the window, as far as its objects are not frozen since."""
    engines = [each for each in result.processes if each.role == "engine"]
    return sum(
        each.full_pass_seconds * (1 - each.state.freeze_count / max(1, each.state.tracked_objects))
        for each in engines
    )


def _full_passes(metric: Metric, side: CellTrials, added: float) -> FullPasses:
    count = sum(map(_count, side.results))
    engines = [p for r in side.results for p in r.processes if p.role == "engine"]
    seen = sum(each.pause_seconds[2] for each in engines) / max(1, count)
    cost = side.cost(metric)
    return FullPasses(
        count=count,
        trials=len(side.results),
        seconds=cost.seconds if cost and side.long_run else seen,
        added=added,
        per_serving=side.long_run.passes_per_serving if side.long_run else None,
    )
