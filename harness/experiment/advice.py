"""What `gcbench advise` answers: the candidate that looked best, and what a second look says."""

from harness.collector.policy import parse_policy
from harness.experiment.reference import is_off
from harness.experiment.result import CellResult, Comparison, ExperimentResult
from harness.metrics import METRICS
from harness.result.result import Result


class Advice(Result, frozen=True, kw_only=True, tag="advice"):
    """Everything `advise` knows at its end.

    ``tried``: all candidates against the baseline; ``verified``: the best of them alone, measured
    afresh, None where none looked better. ``recommends``: the id of a cell whose fresh verdict is
    ``better``, "" for none. ``bound``: what the collector takes altogether, as the change with it
    off, candidate / baseline, None where that was not tried.
    """

    tried: ExperimentResult
    verified: ExperimentResult | None
    recommends: str
    bound: float | None
    snippet: str


def best(result: ExperimentResult) -> str:
    """The id of the candidate that looked best, "" where none looked better than the baseline.

    One in which nothing ever collects is no candidate.
    """
    off = {cell.id for cell in result.cells if is_off(cell)}
    better = [each for each in result.comparisons if each.candidate not in off and gain(each) > 0]
    return max(better, key=gain).candidate if better else ""


def gain(comparison: Comparison) -> float:
    """How much better, relative; negative where it is worse."""
    lower_is_better = METRICS[comparison.metric].direction == "lower"
    return 1 - comparison.ratio if lower_is_better else comparison.ratio - 1


def bound(result: ExperimentResult) -> float | None:
    """The ratio of the baseline's shape with the collector off, where it was tried."""
    cells = {cell.id: cell for cell in result.cells}
    for each in result.comparisons:
        baseline, candidate = cells[each.baseline], cells[each.candidate]
        if is_off(candidate) and _without_gc(baseline) == _without_gc(candidate):
            return each.ratio
    return None


def _without_gc(cell: CellResult) -> dict[str, str | int]:
    return {axis: value for axis, value in cell.axes.items() if axis != "gc"}


def snippet(policy_text: str, batch_size: int) -> str:
    """Python that sets a policy in a process of one's own; "" where there is nothing to set."""
    policy = parse_policy(policy_text)
    lines = ["gc.collect()", "gc.freeze()"] if "freeze" in policy else []
    if numbers := policy.numbers("threshold"):
        lines.append(f"gc.set_threshold({', '.join(map(str, numbers))})")
    if "batch_threshold" in policy:
        lines.append(f"gc.set_threshold(gc.get_threshold()[0] + {batch_size})")
    if not lines:
        return ""
    return "\n".join(["import gc", "", "# once the process is warm, before it serves", *lines])
