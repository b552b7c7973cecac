"""HEAD's figures as every exporter takes them."""

from collections.abc import Iterator
from math import isfinite
from typing import NamedTuple

from harness.metrics import METRICS, Metric
from harness.result.result import NotExportedError
from harness.tracking.gate.result import GateCell, GateResult


class HeadFigure(NamedTuple):
    """One metric of a cell, in the metric's unit; ``base``: BASE's, None where it is not kept."""

    cell: GateCell
    metric: Metric
    value: float
    base: float | None


def head_figures(result: GateResult) -> Iterator[HeadFigure]:
    """Those of metrics that have a direction, less what is no number.

    Raises NotExportedError where a cell has not been measured: a gap would look like a change.
    """
    if result.missing:
        raise NotExportedError("not everything was measured")
    for cell in result.cells:
        known = {change.metric: change.before for change in cell.exact}
        head = {change.metric: change.after for change in cell.exact} | cell.figures
        for name, value in head.items():
            if isfinite(value) and METRICS[name].direction != "neither":
                yield HeadFigure(cell, METRICS[name], value, known.get(name))
