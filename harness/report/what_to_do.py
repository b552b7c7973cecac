"""What to do about a result, in a sentence: for whoever reads no more of a page."""

from collections.abc import Iterable
from math import inf, isfinite, log

from harness import format as fmt
from harness.experiment.reference import candidates
from harness.experiment.result import Comparison, ExperimentResult
from harness.metrics import METRICS
from harness.report.power import settles_nothing
from harness.report.series_words import change_label, named_series
from harness.report.summary import on_device
from harness.tracking.gate.result import GateVerdict
from harness.tracking.history_result import HistoryResult
from harness.tracking.nightly.result import Alert, ChangedSeries, NightlyResult

OF_GATES: dict[GateVerdict, str] = {
    "worse": "Do not merge this yet: mend it, or accept it in the commit's message if it is meant.",
    "better": "Nothing here speaks against merging this: the host path became cheaper.",
    "same": "Nothing here speaks against merging this.",
    "inconclusive": "Measure again before you rely on the times: more --rounds, a quieter machine.",
    "trade": "Decide by hand: some counts became worse and others better.",
    "accepted": "Nothing here speaks against merging this: what became worse has been accepted.",
    "not covered": "Look at the change by hand: no cell has run all functions that differ.",
    "incomplete": "Measure what is missing before you merge this.",
}
"""By what a gate comes to."""

NOTHING = "There is nothing to do."


def of_experiment(result: ExperimentResult) -> str:
    """Which cell to take, "" where several baselines have one each, or nothing is compared."""
    if not result.is_complete or settles_nothing(result):
        return "Do not decide by this run: it has to be finished, or measured again."
    judged = candidates(result)
    if len({each.baseline for each in judged}) != 1 or len({e.metric for e in judged}) != 1:
        return ""
    baseline, metric = judged[0].baseline, METRICS[judged[0].metric]
    better = [each for each in judged if each.verdict == "better"]
    if better:
        pick = min if metric.direction == "lower" else max
        best = pick(better, key=lambda each: each.ratio)
        return f"Take {best.candidate}{_as_good(best, better)}.{_modelled(result)}"
    if all(each.verdict == "worse" for each in judged):
        return f"Keep {baseline}: whatever else was tried is worse."
    if any(each.verdict == "inconclusive" for each in judged):
        return f"Keep {baseline} for now: nothing was shown to be better, and not all was settled."
    return f"Keep {baseline}: nothing that was tried is better."


def _as_good(best: Comparison, better: Iterable[Comparison]) -> str:
    """Those whose interval reaches the best one's estimate."""
    others = [
        each.candidate
        for each in better
        if each is not best and each.ci95[0] <= best.ratio <= each.ci95[1]
    ]
    return f", or {' or '.join(others)}, which cannot be told from it" if others else ""


def _modelled(result: ExperimentResult) -> str:
    if "modelled" not in on_device(result.cells):
        return ""
    return " The device is modelled, so expect a smaller gain on a real one."


def of_history(result: HistoryResult) -> str:
    """The worst of what became worse, or that there is nothing."""
    worse = [each for each in result.changes if each.verdict == "worse"]
    if worse:
        worst = max(worse, key=lambda each: _size(each.ratio))
        commits = fmt.one_of(worst.suspects or [worst.head], 8)
        change = change_label(worst.ratio)
        return f"Look first at {named_series(worst)}: {change} with {commits}."
    if any(each.verdict == "suspicious" for each in result.changes):
        return f"{NOTHING} Measure once more what is suspicious, and it is told from noise."
    return NOTHING if result.is_compared else ""


def of_night(result: NightlyResult) -> str:
    """The worst change that nobody has spoken of, or that there is nothing."""
    found = [
        (_size(each.ratio), each, alert)
        for alert in result.alerts
        for each in alert.changes
        if each.is_regression
    ]
    if found:
        _, worst, alert = max(found, key=lambda one: one[0])
        return _look_first(worst, alert)
    if not result.is_complete or any(each.reason for each in result.measured):
        return "See below why not everything was measured; what was has no new regression."
    if result.suspicious:
        return f"{NOTHING} What is suspicious is measured again tonight."
    return NOTHING if result.is_judged else f"{NOTHING} A verdict takes more nights."


def _look_first(worst: ChangedSeries, alert: Alert) -> str:
    change = f" {change_label(worst.ratio)}" if worst.ratio is not None else ""
    commits = fmt.one_of([each.commit for each in alert.plausible])
    return (
        f"Look first at {commits}, which made {worst.metric} worse{':' * bool(change)}{change}. "
        "Mend it, or acknowledge it in triage.toml."
    )


def _size(ratio: float | None) -> float:
    """How far from no change, whichever way; infinite where it is no number."""
    return abs(log(ratio)) if ratio is not None and ratio > 0 and isfinite(ratio) else inf
