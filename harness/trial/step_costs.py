"""What functions and stages cost in a step or in a request's life; exact where the cell is."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gcbench.function_costs import Call, FunctionCost


class RequestFunctionCost(NamedTuple):
    """A function's own part of what a request costs, per request."""

    file: str
    name: str
    line: int
    bytecodes: float
    allocations: float


class Counted(NamedTuple):
    """What one window counts of a call, per request."""

    bytecodes: float
    allocations: float


class CFunctionCost(NamedTuple):
    """Machine instructions of a shared library's function itself, per request and step."""

    name: str
    library: str
    instructions: float


class StepCosts(msgspec.Struct, frozen=True, kw_only=True):
    """Functions and calls of the steps that were traced, counted over all of them.

    They had ``num_steps`` steps and ``num_rows`` requests' outputs. ``per_request``: what else a
    request costs, by ``add``, ``finish``, ``abort``, ``preempt``. ``every``: one step in so many
    was traced, of all steps, and ``samples`` has the outputs and bytecodes of each; 0: a few full
    ones were.
    ``windows``: what each of several windows counted of such a call; ``per_request`` is of one.
    ``beside``: threads and processes that were there when counting began, in the process that
    built the engine too, or were started meanwhile; in them nothing is counted.
    """

    num_steps: int
    num_rows: int
    functions: list[FunctionCost]
    calls: list[Call]
    per_request: dict[str, list[RequestFunctionCost]] = {}
    every: int = 0
    samples: list[tuple[int, int]] = []
    windows: dict[str, list[Counted]] = {}
    beside: int = 0

    def functions_counted(self) -> set[tuple[str, str]]:
        """File and name of all that took anything, in steps or beside them."""
        beside_steps = (each for part in self.per_request.values() for each in part)
        return {(each.file, each.name) for each in self.functions} | {
            (each.file, each.name) for each in beside_steps
        }


def usual_count(counted: Sequence[float]) -> float | None:
    """What most windows have counted; None where no two agree, or where one is below nothing."""
    usual, times = Counter(counted).most_common(1)[0]
    return usual if times > len(counted) / 2 and min(counted) >= 0 else None


_AGREE = 0.8
"""What a request costs by its tokens' values differs a little from window to window."""


def change_of(before: Sequence[float], after: Sequence[float]) -> float | None:
    """What each window has counted more than the same window before, or the least of them where
    all are within a fifth of one another; None as `usual_count`.

    All must agree: what one window alone has more of is done now and then, and is no request's own.
    """
    if min(*before, *after) < 0:
        return None
    changes = sorted(round(now - then, 6) for then, now in zip(before, after, strict=True))
    least, most = sorted((changes[0], changes[-1]), key=abs)
    return least if least == most or least / most >= _AGREE else None


def is_told(call: str, after: StepCosts, before: StepCosts | None = None) -> bool:
    """Whether what a call costs, or costs more than before, is a figure in all its windows."""
    now = after.windows.get(call, [])
    then = before.windows.get(call, []) if before else now
    if len(now) != len(then):
        return False
    columns = [list(zip(*side, strict=True)) for side in (then, now)]
    if before is None:
        return all(usual_count(counted) is not None for counted in columns[0])
    return all(change_of(*both) is not None for both in zip(*columns, strict=True))


class StageRow(NamedTuple):
    """A stage in one process. ``amount``: ns of CPU time, or bytecodes, of all its calls."""

    role: str
    stage: str
    calls: int
    amount: int


class StageCosts(msgspec.Struct, frozen=True, kw_only=True):
    """``counted``: "cpu_ns" or "bytecodes"; ``num_rows``: requests, summed over the steps."""

    counted: str
    num_rows: int
    costs: list[StageRow]

    def per_row(self) -> dict[tuple[str, str], float]:
        """By role and stage: ns or bytecodes per request and step."""
        return {(each.role, each.stage): each.amount / self.num_rows for each in self.costs}
