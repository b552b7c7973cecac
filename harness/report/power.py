"""What a run can detect, and what it would take to detect less, without figures nobody can use."""

from collections.abc import Iterable, Sequence

import numpy as np

from harness import format as fmt
from harness.experiment.result import CellResult, Comparison, ExperimentResult
from harness.machine.other_work import OtherWork, Surroundings
from harness.statistics.paired_ratio import MIN_ROUNDS
from harness.statistics.power import MOST_DETECTED, MOST_ROUNDS, rounds_needed


def detects(mde: float) -> str:
    """A minimum detectable effect as tables have it: "±1.2 %", "> ±50 %"."""
    return (
        f"±{fmt.percent(mde)}" if mde <= MOST_DETECTED else f"> ±{fmt.rough_percent(MOST_DETECTED)}"
    )


def what_it_takes(rounds: int, mde: float, tolerance: float) -> str:
    """What these rounds detect, and how many rounds it takes to detect the tolerance."""
    if mde <= tolerance:
        return (
            f"{rounds} rounds detect changes from {fmt.percent(mde)}, and this one lies at the "
            "edge of the tolerance; more rounds narrow it"
        )
    found = (
        f"{rounds} rounds detect changes from {fmt.percent(mde)}"
        if mde <= MOST_DETECTED
        else f"{rounds} rounds detect no change below {fmt.rough_percent(MOST_DETECTED)}"
    )
    wanted = f"detecting {fmt.rough_percent(tolerance)} takes"
    needed = rounds_needed(tolerance, rounds, mde)
    if needed > MOST_ROUNDS:
        return (
            f"{found}; {wanted} more than {MOST_ROUNDS}, so a quieter machine helps and more "
            "rounds do not"
        )
    return f"{found}; {wanted} about {needed:,}"


def detects_words(comparisons: Sequence[Comparison]) -> str:
    """What the rounds of all comparisons detect: "changes from 1.2 to 5.5 % ..."."""
    known = [each for each in comparisons if each.rounds >= MIN_ROUNDS]
    if not known:
        return ""
    least, most = (
        min(max(ends, 0.0), MOST_DETECTED)
        for ends in (min(each.mde for each in known), max(each.mde for each in known))
    )
    ends = dict.fromkeys(fmt.percent(end) for end in (least, most))
    more = " or more" if max(each.mde for each in known) > MOST_DETECTED else ""
    which = ", depending on the cell" if len(ends) > 1 else ""
    span = " to ".join(end.removesuffix(" %") for end in ends)
    rounds = fmt.rounds(each.rounds for each in known)
    return f"changes from {span} %{more} with 80 % power in {rounds}{which}"


def settles_nothing(result: ExperimentResult) -> str:
    """In words why a run has told nothing, "" for one that has, or that compares nothing."""
    verdicts = [comparison.verdict for comparison in result.comparisons]
    if not verdicts or any(verdict != "inconclusive" for verdict in verdicts):
        return ""
    few = too_few_rounds(result.comparisons)
    comparisons = {1: "the only comparison is", 2: "both comparisons are"}.get(
        len(verdicts), f"all {len(verdicts)} comparisons are"
    )
    why = [few or f"this run settles nothing about times: {comparisons} inconclusive"]
    spread = _spread(result.cells, result.decide)
    if spread is not None:
        why.append(f"trials of one cell spread by {fmt.percent(spread)} (standard deviation)")
    if result.surroundings is not None and result.surroundings.is_busy:
        why.append("measure again when the machine is quiet: --wait 10m waits for that")
    return "; ".join(why)


def too_few_rounds(comparisons: Sequence[Comparison]) -> str:
    """That there is no verdict on any of these, "" where one has enough rounds for it."""
    if not comparisons or max(comparison.rounds for comparison in comparisons) >= MIN_ROUNDS:
        return ""
    which = comparisons[0].candidate if len(comparisons) == 1 else f"{len(comparisons)} cells"
    have = fmt.rounds(comparison.rounds for comparison in comparisons).partition(" rounds")[0]
    return f"no verdict on {which}: a verdict takes {MIN_ROUNDS} rounds, this run has {have}"


def surroundings_words(surroundings: Surroundings | None) -> str:
    """How busy the machine was before and while it was measured on, "" where nobody looked."""
    if surroundings is None:
        return ""
    before, during = surroundings.before, surroundings.during
    words = f"{'busy' if surroundings.is_busy else 'quiet'}: {_others(during)}"
    if f"{before.others:.1f}" != f"{during.others:.1f}":
        words += f" (before the run: {_cores(before)})"
    if surroundings.waited is not None:
        words += f"; trials waited {fmt.percent(surroundings.waited)} of their time for a core"
    return words


def _others(work: OtherWork) -> str:
    stolen = f"; other guests stole {fmt.percent(work.stolen)} of the time"
    return f"other programs used {_cores(work)}{stolen * (work.stolen > 0)}"


def _cores(work: OtherWork) -> str:
    return f"{work.others:.1f} of {work.cores} cores"


def _spread(cells: Iterable[CellResult], decide: Iterable[str]) -> float | None:
    """The median over cells of standard deviation / mean of what decides; None where none has."""
    found = []
    for samples in (
        cell.metrics[name].samples for cell in cells for name in decide if name in cell.metrics
    ):
        known = np.array([sample for sample in samples if sample is not None])
        if len(known) > 1 and known.mean() > 0:
            found.append(float(known.std(ddof=1) / known.mean()))
    return float(np.median(found)) if found else None
