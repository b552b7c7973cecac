"""What each function costs in a step and in a request's life; exact under exact conditions."""

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
