"""The kinds of results: how each is known, which file keeps it in a run's folder, what is said."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from harness.experiment.advice import ADVICE_SCHEMA, Advice
from harness.experiment.crossover import CROSSOVER_SCHEMA, CrossoverResult
from harness.experiment.diff import DIFF_SCHEMA, DiffResult
from harness.experiment.experiment_file import SCHEMA as PARTS_SCHEMA
from harness.experiment.experiment_file import PartsResult
from harness.experiment.noise_result import NOISE_SCHEMA, NoiseResult
from harness.experiment.result import SCHEMA as EXPERIMENT_SCHEMA
from harness.experiment.result import ExperimentResult
from harness.explain.cadence import CADENCE_SCHEMA, CadenceResult
from harness.load.both_ways import HTTP_SCHEMA, HttpResult
from harness.load.result import SCHEMA as LOAD_SCHEMA
from harness.load.result import LoadResult
from harness.probed.result import PROBE_SCHEMA, ProbeResult
from harness.report.advice import describe_advice
from harness.report.bisect import describe_bisect
from harness.report.cadence import describe_cadence
from harness.report.crossover import describe_crossover
from harness.report.diff import describe_diff
from harness.report.experiment import describe_experiment
from harness.report.gate import describe_gate
from harness.report.http import describe_http
from harness.report.load import describe_load
from harness.report.nightly import describe_nightly
from harness.report.noise import describe_noise
from harness.report.parts import describe_parts
from harness.report.probe import describe_probe
from harness.report.report import Report
from harness.tracking.bisect.result import BISECT_SCHEMA, BisectResult
from harness.tracking.gate.result import GATE_SCHEMA, GateResult
from harness.tracking.nightly.result import NIGHTLY_SCHEMA, NightlyResult


class Kind(NamedTuple):
    """``file``: in the folder of a run, "" where none keeps it but what ``--json`` writes."""

    schema: str
    type: type
    file: str
    describe: Callable[[Any], Report]


KINDS = (
    Kind(GATE_SCHEMA, GateResult, "gate.json", describe_gate),
    Kind(PARTS_SCHEMA, PartsResult, "parts.json", describe_parts),
    Kind(BISECT_SCHEMA, BisectResult, "bisect.json", describe_bisect),
    Kind(CROSSOVER_SCHEMA, CrossoverResult, "crossover.json", describe_crossover),
    Kind(CADENCE_SCHEMA, CadenceResult, "cadence.json", describe_cadence),
    Kind(HTTP_SCHEMA, HttpResult, "http.json", describe_http),
    Kind(ADVICE_SCHEMA, Advice, "advice.json", describe_advice),
    Kind(LOAD_SCHEMA, LoadResult, "load.json", describe_load),
    Kind(NIGHTLY_SCHEMA, NightlyResult, "night.json", describe_nightly),
    Kind(EXPERIMENT_SCHEMA, ExperimentResult, "experiment.json", describe_experiment),
    Kind(NOISE_SCHEMA, NoiseResult, "", describe_noise),
    Kind(DIFF_SCHEMA, DiffResult, "", describe_diff),
    Kind(PROBE_SCHEMA, ProbeResult, "", describe_probe),
)
"""The widest first: the folder of an advice holds an experiment, too."""


def describe(result: object, folder: Path | None = None) -> Report:
    """What is said of a result; ``folder``: where its trials' rows are, for pictures of them."""
    if isinstance(result, ExperimentResult):
        return describe_experiment(result, folder)
    return next(kind for kind in KINDS if kind.type is type(result)).describe(result)
