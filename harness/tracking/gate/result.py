"""What a gate answers: each cell's exact changes, its timing, its cause; and one verdict."""

from typing import Literal

import msgspec

from harness.experiment.result import Comparison, ReplayedWorkload
from harness.machine.describe import Machine
from harness.statistics.verdict import Verdict
from harness.tracking.gate.trees import Tree
from harness.trial.spec import TrialFailure

GATE_SCHEMA = "gcbench.gate/3"

GateVerdict = Literal[Verdict, "incomplete"]
"""``incomplete``: nothing is known to be worse, and not everything was measured."""


class ExactChange(msgspec.Struct, frozen=True, kw_only=True):
    """One exact metric under both commits; ``same`` where the change is below its floor."""

    metric: str
    unit: str
    direction: Literal["higher", "lower"]
    before: float
    after: float
    verdict: Literal["better", "worse", "same"]


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """Whose doing a change of host time is; "untold" where the rounds cannot tell.

    ``control``: head against base with the collector disabled in both. ``code`` and ``collector``:
    what each adds to the base's host time or takes off it, as a ratio; together the whole change.
    """

    control: Comparison
    code: Comparison
    collector: Comparison
    cause: Literal["collector", "code", "both", "untold"]


class TimingChange(msgspec.Struct, frozen=True, kw_only=True):
    """Host time per step under both commits, seconds; ``attribution`` of what has changed."""

    before: float
    after: float
    comparison: Comparison
    attribution: Attribution | None = None


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


class GateResult(msgspec.Struct, frozen=True, kw_only=True):
    """Everything `gate` knows at its end; ``missing`` names cells that measured nothing."""

    name: str
    base: Tree
    head: Tree
    machine: Machine
    workloads: list[ReplayedWorkload]
    tolerance: float
    verdict: GateVerdict
    cells: list[GateCell]
    missing: list[str]
    failures: list[TrialFailure]
    conclusions: list[str]
    notes: list[str]
    command: str
    schema: str = GATE_SCHEMA
