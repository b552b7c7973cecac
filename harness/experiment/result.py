"""An experiment's result as people and programs read it: cells, samples, comparisons, verdicts."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from engines.protocol import Setting
from harness.axes import Cell
from harness.collector.result import ProcessResult
from harness.format import MISSING
from harness.result.result import Result
from harness.statistics.verdict import Verdict
from harness.trial.arrival_fidelity import SentArrivals
from harness.trial.spec import TrialFailure
from harness.trial.steady_state import SteadyState


class MetricSamples(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one cell, a sample per round (None where a round gave none).

    ``estimate``: of a time of which full passes are a part, with those of the long run.
    ``estimate`` and its interval ``ci95``: of ``gc_effect``, which pairs two cells by round; from 3
    rounds on.
    """

    unit: str
    direction: Literal["higher", "lower", "neither"]
    kind: Literal["exact", "timing"]
    median: float | None
    samples: list[float | None]
    estimate: float | None = None
    ci95: tuple[float, float] | None = None

    @property
    def value(self) -> float | None:
        """What is shown: the estimate, the median where there is none."""
        return self.median if self.estimate is None else self.estimate


class StepParts(msgspec.Struct, frozen=True, kw_only=True):
    """What a step's host time is spent on, seconds: ``code`` and the caches that collections leave
    cold, ``young`` collections, and ``full`` passes as often as they come in the long run.
    """

    code: float
    young: float
    full: float


class CellResult(msgspec.Struct, frozen=True, kw_only=True):
    """One cell over all its rounds. ``group``: only cells of one group get verdicts.

    ``tokens_sha256``: one hash, unless trials have produced different tokens; ``text_sha256``
    too, and none without text. ``interpreter``: version, build and collector. It,
    ``steady_state``, ``delivered`` and ``engine_state`` are those of one of its trials. ``step``:
    where it was timed.
    """

    id: str
    axes: dict[str, str | int]
    group: int
    samples: int
    metrics: dict[str, MetricSamples]
    processes: list[ProcessResult]
    tokens_sha256: list[str]
    text_sha256: list[str] = []
    steady_state: SteadyState | None = None
    delivered: SentArrivals | None = None
    engine_state: dict[str, Setting] = {}
    interpreter: str = ""
    step: StepParts | None = None


class ChangePart(msgspec.Struct, frozen=True):
    """A part of a change: candidate / baseline, its interval, the least change it would find."""

    ratio: float
    ci95: tuple[float, float]
    mde: float


class FullPasses(msgspec.Struct, frozen=True, kw_only=True):
    """Full passes of the collector: ``count`` in the windows of ``trials`` trials.

    ``seconds``: what one takes. ``per_serving``: how many come in the long run while the workload
    is served once, None where nothing counted them. ``added``: to the rest of the time, relative.
    """

    count: int
    trials: int
    seconds: float
    added: float
    per_serving: float | None = None


class Apart(msgspec.Struct, frozen=True, kw_only=True):
    """A change without full passes, and the full passes of baseline and candidate."""

    code: ChangePart
    full_passes: tuple[FullPasses, FullPasses]


class NodeRatio(msgspec.Struct, frozen=True):
    """What one node's blocks say of a change; ``ci95`` from 3 rounds on."""

    node: str
    ratio: float
    rounds: int
    ci95: tuple[float, float] | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate against its group's baseline in the metric that decides.

    ``ratio`` candidate / baseline, ``ci95`` its interval, ``p_adjusted`` after Holm over the
    cells compared, ``mde`` the smallest relative change this run would have found with 80 %.
    ``apart``: where either has had full passes that the metric feels.
    ``by_node``: where blocks ran on several nodes. ``nodes_p``: chance of nodes that differ as much
    about one ratio, after Holm over the cells compared; None where it cannot be tested.
    """

    metric: str
    baseline: str
    candidate: str
    ratio: float
    ci95: tuple[float, float]
    verdict: Verdict
    p_adjusted: float
    mde: float
    rounds: int
    apart: Apart | None = None
    by_node: list[NodeRatio] = []
    nodes_p: float | None = None


class ExperimentResult(Result, frozen=True, kw_only=True, tag="experiment"):
    """Everything `compare` knows at its end; `--json` writes it as it stands.

    ``decide``: the metrics that decide, one for each kind of group.
    Not ``is_complete``: interrupted, and of the trials that had ended by then.
    ``surroundings``: what else the machine did, where it was this one; ``nodes``: where there were
    others, how many blocks each has timed. ``not_compared``: sentences on cells that
    have no ratio; ``missing``: on those that were tried and could not be timed.
    ``release_labels``: what its releases are called, where it is of `gcbench
    releases`; ``missing_releases``: those that could not be made ready, with the reason.
    """

    seed: int = 0
    decide: list[str]
    tolerance: float
    cells: list[CellResult]
    comparisons: list[Comparison]
    failures: list[TrialFailure]
    nodes: dict[str, int] = {}
    not_compared: list[str] = []
    missing: list[str] = []
    release_labels: dict[str, str] = {}
    missing_releases: dict[str, str] = {}


def cell_id(cell: Cell, varying: Iterable[str]) -> str:
    """The values of the axes that vary, joined by " · "; the workload's name if none does."""
    shown = (str(getattr(cell, axis)) or MISSING for axis in varying)
    return " · ".join(shown) or cell.workload
