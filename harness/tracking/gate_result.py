"""What a gate answers: each cell's exact changes, its timing, its cause; and one verdict."""

from typing import Any, Literal

import msgspec

from harness.experiment import Comparison, Verdict
from harness.tracking.trees import Tree
from harness.trial import TrialFailure

GATE_SCHEMA = "gcbench.gate/1"

Cause = Literal["collector", "code", "both", "untold", ""]


class ExactChange(msgspec.Struct, frozen=True, kw_only=True):
    """One exact metric under both commits; ``same`` where the change is below its floor."""

    metric: str
    unit: str
    direction: Literal["higher", "lower"]
    before: float
    after: float
    verdict: Literal["better", "worse", "same"]


class TimingChange(msgspec.Struct, frozen=True, kw_only=True):
    """Host time per step under both commits, seconds; HEAD against BASE.

    ``control``: the same with the collector disabled in both. ``collector``: the one over the
    other, round by round: what the collector's part has become. ``cause``: whose the change is,
    "untold" where the two cannot be told apart, "" where there is none.
    """

    before: float
    after: float
    comparison: Comparison
    control: Comparison
    collector: Comparison
    cause: Cause


class GateCell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell under both commits. ``timing`` is None where it was not timed."""

    id: str
    axes: dict[str, str | int]
    exact: list[ExactChange]
    timing: TimingChange | None
    verdict: Verdict
    again: str
    figures: dict[str, float]
    """Medians of HEAD in the metrics that other tools keep."""


class GateResult(msgspec.Struct, frozen=True, kw_only=True):
    """Everything `gate` knows at its end; ``missing`` names cells that measured nothing."""

    name: str
    base: Tree
    head: Tree
    machine: dict[str, Any]
    workload: dict[str, Any]
    tolerance: float
    verdict: Verdict
    cells: list[GateCell]
    missing: list[str]
    failures: list[TrialFailure]
    conclusions: list[str]
    notes: list[str]
    command: str
    schema: str = GATE_SCHEMA
