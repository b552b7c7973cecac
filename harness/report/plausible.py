"""Whether a collector policy can have gained what it seems to: no more than there is to spare."""

from collections.abc import Mapping, Sequence

from harness.experiment.result import CellResult, Comparison
from harness.format import percent
from harness.metrics import METRICS
from harness.report.summary import median

_WITH_CACHES = 2.0
"""A collection also leaves cold caches behind: what it costs may be so many times its pause."""


def implausible_gains(
    comparisons: Sequence[Comparison], cells: Mapping[str, CellResult], tolerance: float
) -> list[str]:
    """A sentence on each other policy that gained more than the baseline's pauses can explain."""
    sentences = []
    for each in comparisons:
        baseline, candidate = (cells.get(name) for name in (each.baseline, each.candidate))
        if (
            baseline is None
            or candidate is None
            or not _differ_in_policy_alone(baseline, candidate)
        ):
            continue
        share = _pause_share(baseline, each.metric)
        if share is not None and _least_gain(each) > _WITH_CACHES * share + tolerance:
            sentences.append(
                f"Implausible: {each.candidate} gains {percent(_gain(each, each.ratio))}, but the "
                f"pauses of {each.baseline} take {percent(share)} of the time, and no policy "
                "spares more than those and the caches they leave cold; something else differed "
                "between the cells, so measure again."
            )
    return sentences


def _differ_in_policy_alone(one: CellResult, other: CellResult) -> bool:
    axes = one.axes.keys() | other.axes.keys()
    return {axis for axis in axes if one.axes.get(axis) != other.axes.get(axis)} == {"gc"}


def _pause_share(cell: CellResult, metric: str) -> float | None:
    """The part of the time in ``metric`` that pauses take."""
    step = cell.step
    if metric.startswith("host_time") and step is not None:
        return (step.young + step.full) / (step.code + step.young + step.full)
    return median(cell, "gc_pause_share")


def _least_gain(comparison: Comparison) -> float:
    return min(_gain(comparison, end) for end in comparison.ci95)


def _gain(comparison: Comparison, ratio: float) -> float:
    """The part of the baseline's time that is spared."""
    return 1 - (ratio if METRICS[comparison.metric].direction == "lower" else 1 / ratio)
