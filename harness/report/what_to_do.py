"""What to do about a result, in a sentence: for whoever reads no more of a page."""

from harness import format as fmt
from harness.experiment.reference import candidates
from harness.experiment.result import ExperimentResult
from harness.metrics import METRICS
from harness.report.power import settles_nothing
from harness.report.series_words import change_label, change_size, named_series
from harness.report.summary import on_device
from harness.tracking.gate.result import GateVerdict
from harness.tracking.history_result import HistoryResult
from harness.tracking.nightly.result import NightlyResult

GATE_ADVICE: dict[GateVerdict, str] = {
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

NOTHING_TO_DO = "There is nothing to do."


def experiment_advice(result: ExperimentResult) -> str:
    """Which cell to take, "" where several baselines have one each, or nothing is compared."""
    if not result.is_complete or settles_nothing(result):
        return "Do not decide by this run: it has to be finished, or measured again."
    judged = candidates(result)
    if len({(each.baseline, each.metric) for each in judged}) != 1:
        return ""
    baseline, verdicts = judged[0].baseline, {each.verdict for each in judged}
    if "better" not in verdicts:
        if "inconclusive" in verdicts:
            return f"Keep {baseline} for now: nothing was shown to be better, and not all settled."
        return f"Keep {baseline}: nothing that was tried is better."
    pick = min if METRICS[judged[0].metric].direction == "lower" else max
    better = [each for each in judged if each.verdict == "better"]
    best = pick(better, key=lambda each: each.ratio)
    alike = [
        each.candidate
        for each in better
        if each is not best and each.ci95[0] <= best.ratio <= each.ci95[1]
    ]
    others = f", or {' or '.join(alike)}, which cannot be told from it" if alike else ""
    is_modelled = "modelled" in on_device(result.cells)
    less = " The device is modelled, so expect a smaller gain on a real one." * is_modelled
    return f"Take {best.candidate}{others}.{less}"


def history_advice(result: HistoryResult) -> str:
    """The worst of what became worse, or that there is nothing."""
    worse = [each for each in result.changes if each.verdict == "worse"]
    if worse:
        worst = max(worse, key=lambda each: change_size(each.ratio))
        commits = fmt.one_of(worst.suspects or [worst.head], 8)
        return f"Look first at {named_series(worst)}: {change_label(worst.ratio)} with {commits}."
    if any(each.verdict == "suspicious" for each in result.changes):
        return f"{NOTHING_TO_DO} Measure again what is suspicious: that tells it from noise."
    return NOTHING_TO_DO if result.is_compared else ""


def night_advice(result: NightlyResult) -> str:
    """The worst change that nobody has spoken of, or that there is nothing."""
    changes = ((alert, each) for alert in result.alerts for each in alert.changes)
    open_ = [
        (change_size(each.ratio), alert, each) for alert, each in changes if each.is_regression
    ]
    if open_:
        _, alert, worst = max(open_, key=lambda one: one[0])
        commits = fmt.one_of([each.commit for each in alert.plausible])
        change = f": {change_label(worst.ratio)}" if worst.ratio is not None else ""
        mend = "Mend it, or acknowledge it in triage.toml."
        return f"Look first at {commits}, which made {worst.metric} worse{change}. {mend}"
    if not result.is_complete or any(each.reason for each in result.measured):
        return "See below why not everything was measured; what was has no new regression."
    if result.suspicious:
        return f"{NOTHING_TO_DO} What is suspicious is measured again tonight."
    return NOTHING_TO_DO + " A verdict takes more nights." * (not result.is_judged)
