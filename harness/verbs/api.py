"""gcbench from Python: ``gcbench.compare(device="null", gc=["default", "freeze"])`` and the like.

What is given is named as the command line's flags and axes are, with underscores; a verb's request
record says what there is. Trials are kept where the command line keeps them, and a result is the
one that it shows. Raises ValueError for what cannot be asked.
"""

import shlex
from collections.abc import Callable
from typing import Any, TypeVar

from harness.experiment.advice import Advice
from harness.experiment.crossover import CrossoverResult
from harness.experiment.noise_result import NoiseResult
from harness.experiment.result import ExperimentResult
from harness.experiment.run_result import RunResult
from harness.explain.cadence import CadenceResult
from harness.explain.result import ExplainResult
from harness.report.kinds import describe_result as describe
from harness.report.kinds import read_result
from harness.tracking.bisect.result import BisectResult
from harness.tracking.gate.result import GateResult
from harness.verbs.advise import give_advice
from harness.verbs.advise_request import AdviseRequest
from harness.verbs.bisect import BisectRequest, find_moving_commit
from harness.verbs.call import CallComparison, compare_function, spelled_call
from harness.verbs.caller import Caller
from harness.verbs.compare import CompareRequest, compare_cells
from harness.verbs.explain import ExplainRequest, count_costs
from harness.verbs.gate import measure_commits
from harness.verbs.gate_request import GateRequest
from harness.verbs.noise import NoiseRequest, measure_noise
from harness.verbs.releases import ReleasesRequest, measure_releases
from harness.verbs.request import VerbRequest, made, words
from harness.verbs.run import RunRequest, run_cell

__all__ = [
    "advise",
    "bisect",
    "compare",
    "compare_call",
    "describe",
    "explain",
    "gate",
    "noise",
    "read_result",
    "releases",
    "run",
]

_Asked = TypeVar("_Asked", bound=VerbRequest)
_Answer = TypeVar("_Answer")


def compare(**asked: Any) -> ExperimentResult:
    """Measure the cells of a grid beside its baseline; see `CompareRequest`."""
    return _ask("compare", CompareRequest, compare_cells, asked)


def compare_call(call: str | Callable[[], object], **asked: Any) -> CallComparison:
    """Compare a function under several collector policies; ``call`` itself or "module:function".

    The rest is as for `compare`. Raises ValueError where a fresh interpreter cannot import it.
    """
    return _ask("compare", CompareRequest, compare_function, {**asked, "call": spelled_call(call)})


def advise(**asked: Any) -> Advice | CadenceResult | CrossoverResult:
    """Find the best settings; or ``predict=True``, or ``models="a,b"``; see `AdviseRequest`."""
    return _ask("advise", AdviseRequest, give_advice, asked)


def run(**asked: Any) -> RunResult:
    """Run one cell once; see `RunRequest`."""
    return _ask("run", RunRequest, run_cell, asked)


def explain(**asked: Any) -> ExplainResult:
    """Say what a step costs, line by line; see `ExplainRequest`."""
    return _ask("explain", ExplainRequest, count_costs, asked)


def gate(**asked: Any) -> GateResult:
    """Measure one commit, ``head``, against another, ``base``; see `GateRequest`."""
    return _ask("gate", GateRequest, measure_commits, asked)


def bisect(**asked: Any) -> BisectResult:
    """Find the commit after ``good``, up to ``bad``, with which a ``metric`` moved."""
    return _ask("bisect", BisectRequest, find_moving_commit, asked)


def releases(**asked: Any) -> ExperimentResult:
    """Measure vLLM's releases ``versions``, a tuple of texts; see `ReleasesRequest`."""
    return _ask("releases", ReleasesRequest, measure_releases, asked)


def noise(**asked: Any) -> NoiseResult:
    """Measure this machine's noise floor; see `NoiseRequest`."""
    return _ask("doctor --noise", NoiseRequest, measure_noise, asked)


def _ask(
    verb: str,
    kind: type[_Asked],
    answer: Callable[[_Asked, Caller], _Answer],
    asked: dict[str, Any],
) -> _Answer:
    request = made(kind, asked)
    with Caller() as caller:
        caller.command = f"gcbench {verb} {shlex.join(words(request))}".rstrip()
        return answer(request, caller)
