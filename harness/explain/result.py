"""What `gcbench explain` answers: an `ExplainResult`, its body of the kind that was asked for."""

from typing import Literal, NamedTuple

import msgspec

from gcbench.function_costs import FunctionCost
from harness.collector.sites import CollectionSites
from harness.explain.pairing import PairKind
from harness.result.result import Result
from harness.trial.step_costs import StepCosts

By = Literal["bytecodes", "objects"]
"""What functions and lines are ranked by."""


class FunctionPlace(NamedTuple):
    """A function."""

    file: str
    name: str
    line: int

    @classmethod
    def of(cls, function: FunctionCost) -> "FunctionPlace":
        """Where a counted one stands."""
        return cls(function.file, function.name, function.line)


class Costs(NamedTuple):
    """Of functions, over all steps that were traced; their own."""

    calls: int = 0
    bytecodes: int = 0
    allocations: int = 0
    net: int = 0

    @classmethod
    def of(cls, function: FunctionCost) -> "Costs":
        """What a counted one took itself, whoever called it."""
        return cls(function.calls, function.bytecodes, function.allocations, function.net)


class CalleeCosts(msgspec.Struct, frozen=True, kw_only=True):
    """What unchanged code takes under both versions as it runs for a changed function.

    ``function`` ran below ``callee``, which the changed function calls itself.
    """

    callee: FunctionPlace
    function: FunctionPlace
    before: Costs
    after: Costs


class FunctionChange(msgspec.Struct, frozen=True, kw_only=True):
    """A function under both versions: none, one or several of each side.

    ``costs_before`` and ``costs_after`` are sums over as many steps as each side's
    `StepCosts.num_steps`. Of a function whose code has changed (``is_touched``) they are its own
    and those of all unchanged code that it has called, which ``beneath`` has one by one. Of an
    unchanged function they are what it took where no changed one has called it. ``does_alike``: its
    code is the same on both sides, so that what it takes more comes from what it is given, and its
    objects perhaps from another state of free lists.
    """

    kind: PairKind
    stage: str
    before: list[FunctionPlace]
    after: list[FunctionPlace]
    costs_before: Costs
    costs_after: Costs
    beneath: list[CalleeCosts] = []
    is_touched: bool = False
    does_alike: bool = False


class LineChange(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the newer version, or one that only the older had (``is_gone``).

    Figures are per request and step: what the line takes more than its counterpart did, with what
    unchanged code takes that a changed function calls there.
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


class FunctionsBody(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="functions"):
    """What a version's functions take, or how that differs from another's.

    ``against``, ``changes`` and ``lines`` where two versions were asked for; each function of
    either side is in one change, each line that has changed its costs in ``lines``.
    """

    by: By
    side: Side
    against: Side | None = None
    changes: list[FunctionChange] = []
    lines: list[LineChange] = []


class RequestStageCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage takes, per request and step."""

    bytecodes: float = 0.0
    objects: float = 0.0


class VersionCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a version takes, per request and step: in all, and by stage.

    It was counted over ``num_steps`` steps with ``num_rows`` outputs; ``every`` as `StepCosts`.
    ``half_width``: half the 95 % interval of the bytecodes of sampled steps, relative.
    """

    label: str
    num_steps: int
    num_rows: int
    every: int = 0
    half_width: float | None = None
    bytecodes: float
    objects: float
    stages: dict[str, RequestStageCost]


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """A function that takes more, or less, in ``version`` than in the one before it.

    Figures are per request and step, its own. ``function``: its name there, of one that is gone the
    one it had. ``series``: its number in all versions, whatever its name. Those of a version add up
    to its difference from the one before it; those of a series, to what the function takes more in
    the last version than in the first. ``split``: it was a part of another; ``joined``: it has
    become one.
    """

    version: str
    series: int
    kind: PairKind
    stage: str
    function: str
    file: str
    line: int
    bytecodes: float
    objects: float


class GrowthBody(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="growth"):
    """With which of several ``versions``, in the order given, each function became dearer.

    ``left_out``: why others that were asked for are not there, a sentence each.
    """

    by: By
    versions: list[VersionCost]
    arrivals: list[Arrival]
    left_out: list[str] = []


SourcePlace = tuple[str, int]
"""File and line."""


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """What a change of a line's objects to another type would touch, found by names in the code.

    ``made``: the line, and all other calls of the same class. ``read``: lines that read the
    objects, under the names by which they are handed on. ``hazards``: those of them that do with a
    list, tuple, dictionary or set what an array does not bear or answers otherwise, by what.
    """

    file: str
    line: int
    made: list[SourcePlace]
    read: list[SourcePlace]
    hazards: dict[str, list[SourcePlace]]

    @property
    def num_files(self) -> int:
        """Files that would change."""
        return len({file for file, _ in (*self.made, *self.read)})


class SitesBody(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="sites"):
    """The lines whose objects make the collector run; ``roots`` are the folders of their files.

    ``prices``: of the lines with the largest shares.
    """

    label: str
    num_steps: int
    roots: list[str]
    found: CollectionSites
    prices: list[Price] = []


ExplainBody = FunctionsBody | GrowthBody | SitesBody
"""What was found, of the kind that was asked for."""


class ExplainResult(Result, frozen=True, kw_only=True, tag="explain"):
    """Everything `explain` knows at its end; ``rows``: of each table that are shown."""

    axes: dict[str, str | int]
    body: ExplainBody
    rows: int = 10
