"""The kinds of results: how one is read, and what is said of each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Union

from harness.experiment.advice import Advice
from harness.experiment.crossover import CrossoverResult
from harness.experiment.diff import DiffResult
from harness.experiment.doctor_result import DoctorResult
from harness.experiment.experiment_file import PartsResult
from harness.experiment.noise_result import NoiseResult
from harness.experiment.result import ExperimentResult
from harness.experiment.run_result import RunResult
from harness.explain.cadence import CadenceResult
from harness.explain.result import ExplainResult
from harness.files import decode_versioned
from harness.load.both_ways import HttpResult
from harness.load.result import LoadResult
from harness.load.sweep import SweepResult
from harness.probed.result import ProbeResult
from harness.render.report import Report
from harness.report.advice import describe_advice
from harness.report.bisect import describe_bisect
from harness.report.cadence import describe_cadence
from harness.report.crossover import describe_crossover
from harness.report.diff import describe_diff
from harness.report.doctor import describe_doctor
from harness.report.experiment import describe_experiment
from harness.report.explain import describe_explain
from harness.report.gate import describe_gate
from harness.report.history import describe_history
from harness.report.http import describe_http
from harness.report.load import describe_load
from harness.report.nightly import describe_nightly
from harness.report.noise import describe_noise
from harness.report.parts import describe_parts
from harness.report.probe import describe_probe
from harness.report.releases import describe_releases
from harness.report.run import describe_run
from harness.report.sweep import describe_sweep
from harness.result.result import RESULT_SCHEMA, Result
from harness.tracking.bisect.result import BisectResult
from harness.tracking.gate.result import GateResult
from harness.tracking.history_result import HistoryResult
from harness.tracking.nightly.result import NightlyResult

KINDS: dict[type[Result], Callable[..., Report]] = {
    GateResult: describe_gate,
    PartsResult: describe_parts,
    BisectResult: describe_bisect,
    CrossoverResult: describe_crossover,
    CadenceResult: describe_cadence,
    HttpResult: describe_http,
    Advice: describe_advice,
    LoadResult: describe_load,
    SweepResult: describe_sweep,
    NightlyResult: describe_nightly,
    HistoryResult: describe_history,
    ExperimentResult: describe_experiment,
    NoiseResult: describe_noise,
    DiffResult: describe_diff,
    ProbeResult: describe_probe,
    ExplainResult: describe_explain,
    RunResult: describe_run,
    DoctorResult: describe_doctor,
}
"""What is said of each kind of result."""

ANY: Any = Union[tuple(KINDS)]  # noqa: UP007
"""The type of a result of whichever kind."""


def read_result(path: Path) -> Result:
    """A result of whichever kind. Raises StoreError."""
    found: Result = decode_versioned(path, ANY, RESULT_SCHEMA)
    return found


def describe_result(result: Result, folder: Path | None = None) -> Report:
    """What is said of a result; ``folder``: where its trials' rows are, for pictures of them."""
    if isinstance(result, ExperimentResult) and result.release_labels:
        return describe_releases(result)
    if folder and isinstance(result, (ExperimentResult, RunResult, LoadResult)):
        return KINDS[type(result)](result, folder)
    return KINDS[type(result)](result)


def experiment_of(result: Result) -> ExperimentResult | None:
    """The comparison that a result is or holds; None where it has none, or several."""
    if isinstance(result, (LoadResult, NoiseResult)):
        return result.experiment
    if isinstance(result, Advice):
        return result.tried
    return result if isinstance(result, ExperimentResult) else None
