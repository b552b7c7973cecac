"""What `--export FORMAT=FILE` writes of a result, by the format's name."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from harness.explain.exports.collapsed import collapsed_stacks
from harness.explain.exports.sarif import sarif_log
from harness.explain.exports.speedscope import speedscope_file
from harness.explain.exports.stacks import Count
from harness.explain.result import ExplainResult, FunctionsBody
from harness.render.csv_text import report_csv
from harness.render.markdown import report_markdown
from harness.render.report import Report
from harness.result.result import NotExportedError, Result
from harness.tracking.gate.exports.action_benchmark import action_benchmark
from harness.tracking.gate.exports.annotations import annotations
from harness.tracking.gate.exports.bencher import bencher_metrics
from harness.tracking.gate.exports.pytorch_hud import hud_records
from harness.tracking.gate.result import GateResult
from harness.tracking.nightly.result import NightlyResult
from harness.tracking.triage import acknowledgement


class Exported(NamedTuple):
    """``picture``: the path of the report's picture from the file's folder, "" for none."""

    result: Any
    report: Report
    picture: str


Export = Callable[[Exported], bytes]
"""Raises NotExportedError."""

_EXPORTS: Mapping[str, tuple[type[Result], Export]] = {
    "markdown": (Result, lambda of: report_markdown(of.report, of.picture).encode()),
    "csv": (Result, lambda of: report_csv(of.report).encode()),
    "triage": (NightlyResult, lambda of: _triage(of.result)),
    "github-annotations": (GateResult, lambda of: annotations(of.result)),
    "action-benchmark-smaller": (GateResult, lambda of: action_benchmark(of.result, "lower")),
    "action-benchmark-bigger": (GateResult, lambda of: action_benchmark(of.result, "higher")),
    "bencher": (GateResult, lambda of: bencher_metrics(of.result)),
    "pytorch-hud": (GateResult, lambda of: hud_records(of.result)),
    "speedscope": (ExplainResult, lambda of: speedscope_file(of.result.name, _body(of.result))),
    "collapsed": (ExplainResult, lambda of: _collapsed(_body(of.result))),
    "sarif": (ExplainResult, lambda of: sarif_log(_body(of.result))),
}


def exports(kind: type[Result]) -> dict[str, Export]:
    """The formats of a kind of result; of all kinds for `Result` itself."""
    return {
        name: export
        for name, (of, export) in _EXPORTS.items()
        if issubclass(of, kind) or issubclass(kind, of)
    }


def _triage(result: NightlyResult) -> bytes:
    """Entries on all that became worse and that nobody has spoken of."""
    entries = [
        acknowledgement(
            alert.commit,
            [(each.series, each.metric) for each in alert.changes if each.is_regression],
        )
        for alert in result.alerts
        if alert.is_regression
    ]
    if not entries:
        raise NotExportedError("no regression is left to acknowledge")
    return "\n".join(["", *entries]).encode()


def _collapsed(body: FunctionsBody) -> bytes:
    count: Count = "allocations" if body.by == "objects" else "bytecodes"
    return collapsed_stacks(body.side.costs, count)


def _body(result: ExplainResult) -> FunctionsBody:
    if not isinstance(result.body, FunctionsBody):
        raise NotExportedError("it is not of one version's functions, or two versions'")
    return result.body
