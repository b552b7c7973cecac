"""What a run can detect, and what it would take to detect less, without figures nobody can use."""

from collections.abc import Iterable

import numpy as np

from harness import format as fmt
from harness.experiment.result import CellResult, ExperimentResult
from harness.machine.other_work import OtherWork, Surroundings
from harness.statistics.paired_ratio import MIN_ROUNDS
from harness.statistics.power import MOST_DETECTED, MOST_ROUNDS, rounds_needed


def detects(mde: float) -> str:
    """A minimum detectable effect as tables have it: "±1.2 %", "> ±50 %"."""
    return (
        f"±{fmt.percent(mde)}" if mde <= MOST_DETECTED else f"> ±{fmt.rough_percent(MOST_DETECTED)}"
    )


def what_it_takes(rounds: int, mde: float, tolerance: float) -> str:
    """What these rounds find, and how many more it would take to find the tolerance."""
    if mde <= tolerance:
        return (
            f"{rounds} rounds find a change of {fmt.percent(mde)}, and this one lies at the edge "
            "of the tolerance; more rounds narrow it"
        )
    found = (
        f"{rounds} rounds find a change of {fmt.percent(mde)}"
        if mde <= MOST_DETECTED
        else f"{rounds} rounds find no change below {fmt.rough_percent(MOST_DETECTED)}"
    )
    needed = rounds_needed(tolerance, rounds, mde)
    if needed > MOST_ROUNDS:
        return (
            f"{found}, and one of {fmt.rough_percent(tolerance)} takes more than {MOST_ROUNDS}: "
            "a quieter machine helps, more rounds do not"
        )
    return f"{found}, one of {fmt.rough_percent(tolerance)} takes about {needed:,}"


def settles_nothing(result: ExperimentResult) -> str:
    """In words why a run has told nothing, "" for one that has, or that compares nothing."""
    verdicts = [comparison.verdict for comparison in result.comparisons]
    if not verdicts or any(verdict != "inconclusive" for verdict in verdicts):
        return ""
    few = max(comparison.rounds for comparison in result.comparisons) < MIN_ROUNDS
    comparisons = (
        "the only comparison is" if len(verdicts) == 1 else f"all {len(verdicts)} comparisons are"
    )
    why = [f"this run settles nothing about times: {comparisons} inconclusive"]
    if few:
        why.append(f"a verdict takes {MIN_ROUNDS} rounds")
    spread = _spread(result.cells, result.decide)
    if spread is not None:
        why.append(f"trials of one cell spread by {fmt.percent(spread)} (standard deviation)")
    if result.surroundings is not None and result.surroundings.is_busy:
        why.append("measure again when the machine is quiet: --wait-quiet 10m waits for that")
    return "; ".join(why)


def surroundings_words(surroundings: Surroundings) -> str:
    """How busy the machine was before and while it was measured on."""
    before, during = surroundings.before, surroundings.during
    words = f"busy: {_others(during)}" if surroundings.is_busy else f"quiet: {_others(during)}"
    words += f" while it was measured on (before: {_cores(before)})"
    if surroundings.waited is not None:
        words += f"; a trial waited {fmt.percent(surroundings.waited)} of its time for its core"
    return words


def _others(work: OtherWork) -> str:
    stolen = f", {fmt.percent(work.stolen)} of the time was stolen by other guests"
    return f"other programs took {_cores(work)}{stolen * (work.stolen > 0)}"


def _cores(work: OtherWork) -> str:
    return f"{work.others:.1f} of {work.cores} cores"


def _spread(cells: Iterable[CellResult], decide: Iterable[str]) -> float | None:
    """The median over cells of standard deviation / mean of what decides; None where none has."""
    found = []
    for samples in (cell.metrics[name].samples for cell in cells for name in decide
                    if name in cell.metrics):  # fmt: skip
        known = np.array([sample for sample in samples if sample is not None])
        if len(known) > 1 and known.mean() > 0:
            found.append(float(known.std(ddof=1) / known.mean()))
    return float(np.median(found)) if found else None
