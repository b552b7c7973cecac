"""A gate's figures for github-action-benchmark: one file a direction, as its tools want them."""

from math import isfinite
from pathlib import Path
from typing import Any

from harness.files import indented, write_output
from harness.metrics import METRICS
from harness.tracking.gate.result import GateResult


def write_github_action_benchmark(path: Path, result: GateResult) -> list[Path]:
    """Write ``NAME.smaller.json`` and ``NAME.bigger.json``; the files written.

    They are for the tools ``customSmallerIsBetter`` and ``customBiggerIsBetter``. Raises
    StoreError where they cannot be written.
    """
    written = []
    for direction, word in (("lower", "smaller"), ("higher", "bigger")):
        target = path.with_name(f"{path.name.removesuffix('.json')}.{word}.json")
        content = indented(_entries(result, direction))
        write_output(target, content, "--github-action-benchmark FILE")
        written.append(target)
    return written


def _entries(result: GateResult, direction: str) -> list[dict[str, Any]]:
    entries = []
    for cell in result.cells:
        exact = {change.metric: change.after for change in cell.exact}
        for name, value in (exact | cell.figures).items():
            if METRICS[name].direction == direction and isfinite(value):
                entry = {"name": f"{cell.id} · {name}", "unit": METRICS[name].unit, "value": value}
                entries.append(entry | {"extra": f"commit {result.head.sha}"})
    return entries
