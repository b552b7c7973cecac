"""What the timed rounds of a gate can detect, how soon, and when they have told nothing."""

from harness import format as fmt
from harness.report.power import detects
from harness.statistics.power import MOST_ROUNDS, rounds_needed
from harness.tracking.gate.result import GateResult


def settles_no_times(result: GateResult) -> str:
    """That times have told nothing, where the machine was at work for others."""
    is_busy = result.surroundings is not None and result.surroundings.is_busy
    if result.verdict != "inconclusive" or not is_busy:
        return ""
    return (
        "this run settles nothing about times, and the machine was busy: measure again when it is "
        "quiet (--wait 10m waits for that)"
    )


def power_words(result: GateResult) -> str:
    """What the timed rounds detect in the usual step, and how long they take to."""
    steady = [cell.timing.steady for cell in result.cells if cell.timing]
    if not steady or not result.timed_seconds:
        return ""
    worst = max(steady, key=lambda comparison: comparison.mde)
    minutes = result.timed_seconds / 60 / worst.rounds
    needed = rounds_needed(result.tolerance, worst.rounds, worst.mde)
    found = f"{detects(worst.mde)} in {worst.rounds} rounds, {result.timed_seconds / 60:.1f} min"
    takes = (
        f"about {needed * minutes:.1f} min"
        if needed <= MOST_ROUNDS
        else f"more than {MOST_ROUNDS} rounds"
    )
    return f"{found}; ±{fmt.percent(result.tolerance)} takes {takes}"
