"""Bencher Metric Format: what ``bencher run --adapter json`` reads (bencher.dev/bmf.json)."""

from harness.files import indented
from harness.tracking.gate.exports.head_figures import head_figures
from harness.tracking.gate.result import GateResult


def bencher_metrics(result: GateResult) -> bytes:
    """A benchmark for each cell, a measure for each metric, in the metric's unit."""
    benchmarks: dict[str, dict[str, dict[str, float]]] = {}
    for cell, metric, value, _ in head_figures(result):
        benchmarks.setdefault(cell.id, {})[metric.name] = {"value": value}
    return indented(benchmarks)
