"""What `gcbench explain` answers: of one version its functions, of two each function's change."""

from typing import NamedTuple

import msgspec

from harness.explain.pairing import Kind
from harness.machine.describe import Machine
from harness.result.result import ReplayedWorkload
from harness.trial.step_costs import StepCosts

EXPLAIN_SCHEMA = "gcbench.explain/1"


class Where(NamedTuple):
    """A function."""

    file: str
    name: str
    line: int


class Costs(NamedTuple):
    """Of functions, over all steps that were traced; their own."""

    calls: int = 0
    bytecodes: int = 0
    allocations: int = 0
    net: int = 0


class FunctionChange(msgspec.Struct, frozen=True, kw_only=True):
    """A function under both versions: none, one or several of each side.

    ``costs_before`` and ``costs_after`` are sums over as many steps as each side's
    `StepCosts.num_steps`. ``does_alike``: its code is the same on both sides, so that what it takes
    more comes from what it is given, and its objects perhaps from another state of free lists.
    """

    kind: Kind
    stage: str
    before: list[Where]
    after: list[Where]
    costs_before: Costs
    costs_after: Costs
    does_alike: bool = False


class LineChange(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the newer version, or one that only the older had (``is_gone``).

    Figures are per request and step: what the line itself takes more than its counterpart did.
    """

    file: str
    line: int
    function: str
    text: str
    bytecodes: float
    allocations: float
    net: float
    is_gone: bool = False


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """A version: what it is called, below which folders its files lie, and what it took.

    ``metrics``: those of the trial that counted, by name.
    """

    label: str
    roots: list[str]
    costs: StepCosts
    metrics: dict[str, float | None]


class ExplainResult(msgspec.Struct, frozen=True, kw_only=True):
    """Everything `explain` knows at its end.

    ``against``, ``changes`` and ``lines`` where two versions were asked for; each function of
    either side is in one change, each line that has changed its costs in ``lines``.
    """

    name: str
    command: str
    machine: Machine
    workload: ReplayedWorkload
    axes: dict[str, str | int]
    side: Side
    against: Side | None = None
    changes: list[FunctionChange] = []
    lines: list[LineChange] = []
    notes: list[str] = []
    schema: str = EXPLAIN_SCHEMA
