"""How a commit's figure is counted, and which metrics can be."""

from engines.nearest import nearest
from harness.axes import Cell
from harness.experiment.grid import traits
from harness.experiment.outcomes import Trials
from harness.experiment.plan import BRIEF, CROSSING
from harness.experiment.same_work import difference
from harness.metrics import METRICS, Metric
from harness.tracking.bisect.bisection import CountedFigure
from harness.trial.spec import TrialResult


def find_metric(name: str) -> Metric:
    """The metric of a name. Raises ValueError where there is none, or it cannot be searched by."""
    metric = METRICS.get(name)
    if metric is not None and _is_countable(metric):
        return metric
    near = ", ".join(nearest(name, (each.name for each in METRICS.values() if _is_countable(each))))
    if metric is None:
        raise ValueError(f"--metric {name}: no such metric; did you mean {near}?")
    if metric.kind != "exact" or metric.mode == "timing":
        why = "it comes from timed trials, and bisect searches by exact counts alone"
    else:
        why = "more of it is neither better nor worse"
    raise ValueError(f"--metric {name}: {why}; did you mean {near}?")


def check_cell(cell: Cell, metric: Metric) -> None:
    """Raises ValueError where the metric's figure would not repeat, or there would be none."""
    if metric.mode in CROSSING:
        if not traits(cell).has_messages:
            raise ValueError(
                f"--metric {metric.name}: nothing crosses with --worker {cell.worker}; use "
                "--worker process"
            )
    elif not traits(cell).is_exact:
        raise ValueError(
            f"--metric {metric.name}: its counts need not repeat here, because there is a clock, a "
            "thread or a second process; use --device null and leave --output-processing, "
            "--worker and --axis engine-core=out"
        )


def read_figure(
    trials: Trials, cell: Cell, metric: Metric, expected: TrialResult | None
) -> CountedFigure:
    """The metric's figure of a plan's one trial.

    ``expected``: GOOD's trial, whose work it must have done; None while there is none.
    """
    reasons = [
        *(each.reason for each in trials.failures),
        *(each.invalid for each in trials.invalid),
    ]
    result = trials.counted_in(metric.mode, cell)
    value = trials.counted_value(cell, metric)
    if result is None or value is None:
        return CountedFigure(None, next(iter(reasons), f"its trial gave no {metric.name}"))
    what = difference(result, expected) if expected and metric.mode not in BRIEF else ""
    if what:
        return CountedFigure(None, f"it produces other {what} than GOOD, which is different work")
    return CountedFigure(value)


def _is_countable(metric: Metric) -> bool:
    return metric.kind == "exact" and metric.mode != "timing" and metric.direction != "neither"
