"""What a gate answers: each cell's exact changes, its timing, its cause; and one verdict."""

from typing import Literal

import msgspec

from harness.collector.callers import CollectorCall
from harness.experiment.result import Comparison
from harness.explain.changed_functions import ChangedFunction
from harness.explain.largest_changes import LargestChange
from harness.result.result import Result
from harness.statistics.verdict import Verdict
from harness.tracking.gate.trees import Tree
from harness.tracking.gate.waivers import Waiver
from harness.trial.growing_lines import GrowingLine
from harness.trial.spec import TrialFailure

GateVerdict = Literal[Verdict, "trade", "accepted", "not covered", "incomplete"]
"""``trade``: some exact metrics are worse and others better, and no time says more of the whole.
``accepted``: what is worse, or other outputs, waivers accept. ``not covered``: nothing is known to
be worse, and no cell has run all functions that differ. ``incomplete``: nothing is known to
be worse, and not everything was measured."""


class ExactChange(msgspec.Struct, frozen=True, kw_only=True):
    """One exact metric under both commits; ``same`` where the change is below its floor.

    ``accepts``: by how much it may be worse, in its unit; it is ``accepted`` where it is worse and
    that is enough, by the same floor. ``since``: what it was at the release that its budget begins
    with, and ``budget`` how much may be added; beyond it any loss is ``worse``.
    """

    metric: str
    unit: str
    direction: Literal["higher", "lower"]
    before: float
    after: float
    verdict: Literal["better", "worse", "same", "accepted"]
    accepts: float = 0.0
    since: float | None = None
    budget: float = 0.0

    @property
    def loss(self) -> float:
        """By how much it is worse, in its unit; less than nothing where it is better."""
        return self._loss(self.before)

    @property
    def grown(self) -> float:
        """By how much it is worse than at the release; 0 without a budget."""
        return 0.0 if self.since is None else self._loss(self.since)

    @property
    def overspends(self) -> bool:
        """Whether it adds to what is beyond its budget."""
        return self.since is not None and self.loss > 0 and self.grown > self.budget

    def _loss(self, before: float) -> float:
        more = self.after - before
        return -more if self.direction == "higher" else more


class CFunctionChange(msgspec.Struct, frozen=True, kw_only=True):
    """Instructions that a function of a shared library executes itself, per request and step."""

    function: str
    library: str
    before: float
    after: float

    @property
    def more(self) -> float:
        """By how much it executes more."""
        return self.after - self.before


class CauseOfChange(msgspec.Struct, frozen=True, kw_only=True):
    """Whose doing a change of host time is; "untold" where the rounds cannot tell.

    ``control``: head against base with the collector disabled in both. ``code`` and ``collector``:
    what each adds to the base's host time or takes off it, as a ratio; together the whole change.
    """

    control: Comparison
    code: Comparison
    collector: Comparison
    cause: Literal["collector", "code", "both", "untold"]


class StallChange(msgspec.Struct, frozen=True, kw_only=True):
    """Stalls that one commit has and the other has not, in the same ``steps`` steps of each.

    ``before`` and ``after`` count them, ``longest_*`` are in seconds. ``ratio``: the time of all
    steps and what HEAD's stalls add to it, less what BASE's do, over that time.
    """

    before: int
    after: int
    longest_before: float
    longest_after: float
    steps: int
    rounds: int
    ratio: float
    ci95: tuple[float, float]
    p_adjusted: float
    verdict: Verdict


class RequestChange(msgspec.Struct, frozen=True, kw_only=True):
    """What requests feel or cost: a metric of BASE, median over rounds, of HEAD by the ratio."""

    before: float
    after: float
    change: Comparison


class TimingChange(msgspec.Struct, frozen=True, kw_only=True):
    """Host time per step under both commits, seconds: of a usual step, of the mean; and stalls.

    ``before`` and ``mean_before`` are medians over the rounds that both have. HEAD's are these
    times the paired ratio: a median of its own may lie on the other side of the change.
    ``requests``: throughput, TTFT and CPU time, in which calls between steps are, too.
    ``stalls`` is None where base and head took no turns. ``attribution`` is of the usual step
    where that has changed, else of the mean.
    """

    before: float
    after: float
    steady: Comparison
    mean_before: float
    mean_after: float
    mean: Comparison
    stalls: StallChange | None
    attribution: CauseOfChange | None = None
    requests: list[RequestChange] = []

    @property
    def verdict(self) -> Verdict:
        """The worst of them; better only where none is worse, same only where all are.

        What requests feel counts where it is known to have changed: it is mostly made of steps,
        and needs more rounds than they do.
        """
        found = {self.steady.verdict, self.mean.verdict}
        found |= {each.change.verdict for each in self.requests} & {"worse", "better"}
        if self.stalls is not None:
            found.add(self.stalls.verdict)
        order: tuple[Verdict, ...] = ("worse", "better", "inconclusive", "same")
        return next(verdict for verdict in order if verdict in found)


class GateCell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell under both commits. ``timing`` is None where it was not timed."""

    id: str
    axes: dict[str, str | int]
    exact: list[ExactChange]
    timing: TimingChange | None
    verdict: GateVerdict
    command: str
    figures: dict[str, float]
    """Medians of HEAD in the metrics that other tools keep."""
    calls_before: list[CollectorCall] = []
    calls_after: list[CollectorCall] = []
    """Lines that called the collector by hand, of BASE and of HEAD."""
    growing_before: list[GrowingLine] = []
    growing_after: list[GrowingLine] = []
    """Lines whose bytes grow as long as the engine serves, of BASE and of HEAD."""
    functions: list[LargestChange] = []
    """Of which the changed counts are mostly made, where any count has changed."""
    c_functions: list[CFunctionChange] = []
    """Those whose instructions changed most, where their sum has changed."""
    untold: list[str] = []
    """A sentence for each count that is no figure: it is below nothing, or repeats do not agree."""
    other_outputs: str = ""
    """What HEAD gives requests that BASE does not, and where first; a waiver accepts it."""


class UsedWaiver(msgspec.Struct, frozen=True, kw_only=True):
    """A waiver with the cells that needed it, and the most that one of them has used of it."""

    waiver: Waiver
    cells: list[str] = []
    used: float = 0.0
    most: float = 0.0
    """Of that cell, in the metric's unit: what a share comes to."""


class GateResult(Result, frozen=True, kw_only=True, tag="gate"):
    """Everything `gate` knows at its end; ``missing`` names cells that measured nothing.

    ``package``: the path of what was measured, in whose folder the files of functions are named.
    ``outside``: folders and files beside it that differ, too.
    ``not_run``: functions that differ and that no cell has executed while it served requests.
    ``waivers``: what has been said between BASE and HEAD to be accepted, needed or not.
    ``surroundings``: what else the machine did; ``timed_seconds``: how long timed rounds took.
    """

    base: Tree
    head: Tree
    tolerance: float
    verdict: GateVerdict
    cells: list[GateCell]
    missing: list[str]
    failures: list[TrialFailure]
    conclusions: list[str]
    package: str = ""
    outside: list[str] = []
    not_run: list[ChangedFunction] = []
    waivers: list[UsedWaiver] = []
    timed_seconds: float = 0.0
