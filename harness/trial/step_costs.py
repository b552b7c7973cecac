"""What functions and stages cost in a step or in a request's life; exact where the cell is."""

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


class StepCosts(msgspec.Struct, frozen=True, kw_only=True):
    """Functions and calls of the steps that were traced, counted over all of them.

    They had ``num_steps`` steps and ``num_rows`` requests' outputs. ``per_request``: what else a
    request costs, by ``add``, ``finish`` and ``abort``. ``every``: one step in so many was traced,
    of all steps, and ``samples`` has the outputs and bytecodes of each; 0: a few full ones were.
    """

    num_steps: int
    num_rows: int
    functions: list[FunctionCost]
    calls: list[Call]
    per_request: dict[str, list[RequestFunctionCost]] = {}
    every: int = 0
    samples: list[tuple[int, int]] = []


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
