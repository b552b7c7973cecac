"""For github-action-benchmark's tools ``customSmallerIsBetter`` and ``customBiggerIsBetter``."""

from typing import Literal

from harness.files import indented
from harness.tracking.gate.exports.head_figures import head_figures
from harness.tracking.gate.result import GateResult


def action_benchmark(result: GateResult, direction: Literal["lower", "higher"]) -> bytes:
    """The figures of one direction; the action wants a file for each."""
    return indented(
        [
            {
                "name": f"{cell.id} · {metric.name}",
                "unit": metric.unit,
                "value": value,
                "extra": f"commit {result.head.sha}",
            }
            for cell, metric, value, _ in head_figures(result)
            if metric.direction == direction
        ]
    )
