"""Records for PyTorch's benchmark database, which its HUD shows.

Fields as in pytorch/test-infra, clickhouse_db_schema/oss_ci_benchmark_v3/schema.sql, where each
``extra_info`` is a map of strings. Its upload-benchmark-results adds repository, workflow, runner.
"""

from typing import Any

from harness.files import indented
from harness.tracking.gate.exports.head_figures import HeadFigure, head_figures
from harness.tracking.gate.result import GateResult


def hud_records(result: GateResult) -> bytes:
    """A record for each figure; BASE's value is the target that HEAD is held to."""
    return indented([_record(result, each) for each in head_figures(result)])


def _record(result: GateResult, figure: HeadFigure) -> dict[str, Any]:
    cell, metric = figure.cell, figure.metric
    target = {} if figure.base is None else {"target_value": figure.base}
    commits = {"base": result.base.sha, "head": result.head.sha}
    axes = {axis: str(value) for axis, value in cell.axes.items()}
    return {
        "benchmark": {
            "name": "gcbench gate",
            "mode": "inference",
            "extra_info": axes | commits | {"cell": cell.id},
        },
        "model": {
            "name": axes["workload"],
            "type": "host path",
            "backend": axes["engine"],
            "origins": ["gcbench"],
        },
        "metric": {
            "name": metric.name,
            "benchmark_values": [figure.value],
            **target,
            "extra_info": {
                "unit": metric.unit,
                "direction": metric.direction,
                "verdict": cell.verdict,
            },
        },
    }
