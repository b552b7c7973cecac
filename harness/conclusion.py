"""What a comparison says, in sentences."""

import math
from statistics import median

from harness.experiment import CellResult, Comparison, ExperimentResult
from harness.format import percent
from harness.statistics import MIN_ROUNDS

FULL_PASSES_FOR_A_CLAIM = 5


def conclude(result: ExperimentResult) -> list[str]:
    """Sentences on what won, what is the same, what stays open, and the collector's part."""
    cells = {cell.id: cell for cell in result.cells}
    by_verdict = sorted(result.comparisons, key=_reading_order)
    sentences = [_verdict(comparison, result.tolerance) for comparison in by_verdict]
    for baseline in dict.fromkeys(c.baseline for c in result.comparisons):
        ours = [c for c in by_verdict if c.baseline == baseline]
        sentences += _collector(cells[baseline], ours)
    if len({cell.group for cell in result.cells}) > 1:
        sentences.append(
            "Cells that differ in machine, interpreter, device or workload stand side by side: "
            "there is no verdict between them."
        )
    if result.cells and max(map(_full_passes, result.cells)) < FULL_PASSES_FOR_A_CLAIM:
        sentences.append(
            f"No cell saw {FULL_PASSES_FOR_A_CLAIM} full passes of the collector: "
            "nothing can be said about them from this run."
        )
    return sentences


def _reading_order(comparison: Comparison) -> tuple[int, float]:
    rank = ("better", "worse", "same", "inconclusive").index(comparison.verdict)
    return rank, -abs(math.log(comparison.ratio))


def _verdict(comparison: Comparison, tolerance: float) -> str:
    baseline, candidate = comparison.baseline, comparison.candidate
    change = _change(comparison)
    match comparison.verdict:
        case "better" | "worse" as verdict:
            return f"{candidate} is {verdict} than {baseline}: {change}."
        case "same":
            return f"{candidate} is the same as {baseline} within {_rough(tolerance)}: {change}."
        case _:
            open_question = f"{candidate} against {baseline} is not resolved: {change}"
            return f"{open_question}; {_what_it_takes(comparison, tolerance)}."


def _change(comparison: Comparison) -> str:
    low, high = (percent(bound - 1, signed=True) for bound in comparison.ci95)
    change = percent(comparison.ratio - 1, signed=True)
    return f"{_words(comparison.metric)} {change} (95 % interval {low} to {high})"


def _what_it_takes(comparison: Comparison, tolerance: float) -> str:
    """The detectable effect falls with the root of the rounds, or a little faster."""
    if comparison.rounds < MIN_ROUNDS:
        return f"a verdict takes {MIN_ROUNDS} rounds and this run has {comparison.rounds}"
    found = f"{comparison.rounds} rounds find a change of {percent(comparison.mde)}"
    if comparison.mde <= tolerance:
        return f"{found}, and this one lies at the edge of the tolerance; more rounds narrow it"
    fewer = math.log1p(comparison.mde) / math.log1p(tolerance)
    needed = math.ceil(comparison.rounds * fewer**2)
    return f"{found}, one of {_rough(tolerance)} takes about {needed:,}"


def _collector(baseline: CellResult, comparisons: list[Comparison]) -> list[str]:
    """What the baseline would gain with no collector: the most that sparing it can explain."""
    effect = _median(baseline, "gc_effect")
    if effect is None:
        return []
    saved = effect / (1 + effect)
    if saved <= 0:
        return [
            f"Without the collector {baseline.id} is no faster: "
            "the collector explains none of the differences."
        ]
    sentences = [f"Without the collector {baseline.id} spends {percent(saved)} less host time."]
    for comparison in comparisons:
        if comparison.verdict != "better" or not comparison.metric.startswith("host_time"):
            continue
        gain = 1 - comparison.ratio
        sentences.append(
            f"The collector alone could explain the gain of {comparison.candidate}."
            if saved >= gain
            else f"The collector explains at most {percent(saved / gain)} of the gain of "
            f"{comparison.candidate}; the rest is other work spared."
        )
    return sentences


def _full_passes(cell: CellResult) -> float:
    """Full passes over all rounds; over the last trial's processes where no metric counts them."""
    counted = cell.metrics.get("gc_collections_gen2")
    over_rounds = sum(sample or 0 for sample in counted.samples) if counted else 0
    return max(over_rounds, sum(process.collections[2] for process in cell.processes))


def _median(cell: CellResult, metric: str) -> float | None:
    samples = cell.metrics.get(metric)
    known = [sample for sample in samples.samples if sample is not None] if samples else []
    return median(known) if known else None


def _words(metric: str) -> str:
    return metric.replace("_", " ")


def _rough(share: float) -> str:
    return f"{100 * share:g} %"
