"""Holds a call to a budget of tracked objects and bytecodes per request."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from gcbench.call_cost import CallCost, measure_call

if TYPE_CHECKING:
    from gcbench.function_costs import FunctionCost

_WHAT_AND_HOW = {
    "survivors": ("tracked objects left alive", "keep fewer objects"),
    "peak": ("objects alive at once", "hold fewer objects at a time"),
    "allocations": ("allocations", "make fewer objects"),
    "bytecodes": ("bytecodes", "do less in Python per request"),
}

_LEAST_SHARE = 0.05
"""Of a count: what a function must have taken to be named."""


class BudgetExceeded(AssertionError):  # noqa: N818
    """A call did more per request than its budget allows."""


class Limits(NamedTuple):
    """At most so many per request; None is no limit."""

    survivors: float | None = None
    peak: float | None = None
    allocations: float | None = None
    bytecodes: float | None = None

    def given(self) -> dict[str, float]:
        """The limits that there are. Raises ValueError where a check could not fail or pass."""
        __tracebackhide__ = True
        limits = {name: limit for name, limit in self._asdict().items() if limit is not None}
        if not limits:
            names = ", ".join(self._fields)
            raise ValueError(f"No budget is given, so nothing could fail; give one of {names}.")
        for name, limit in limits.items():
            if not (math.isfinite(limit) and limit >= 0):
                raise ValueError(f"{name} is {limit}; a budget is a finite number, zero or more.")
        return limits


def assert_tracked_per_request(
    call: Callable[[], object], num_requests: int, at_most: float
) -> None:
    """Assert that ``call`` leaves at most so many tracked objects alive per request.

    ``call`` handles a step of ``num_requests`` requests; a constant number of objects per call
    counts too, divided by them. Raises BudgetExceeded, and as `measure_within`.
    """
    __tracebackhide__ = True
    limits = Limits(survivors=at_most)
    check_budget(measure_within(limits, call, num_requests), limits)


def measure_within(limits: Limits, call: Callable[[], object], num_requests: int) -> CallCost:
    """Measure ``call``, traced only where a limit needs it; no check of the figures.

    Raises ValueError for limits as `Limits.given`, the rest as `measure_call`.
    """
    __tracebackhide__ = True
    return measure_call(call, num_requests, traced=limits.given().keys() != {"survivors"})


def check_budget(cost: CallCost, limits: Limits) -> None:
    """Raise BudgetExceeded where a figure is over its limit, ValueError where there is none."""
    __tracebackhide__ = True
    given, measured = limits.given(), cost.per_request()
    if missing := [name for name in given if name not in measured]:
        raise ValueError(f"{cost.name} was not traced, so there is no figure for {missing[0]}.")
    # Quotients are compared, not products: 29 / 100 is 0.29, and 0.29 * 100 is below 29.
    if exceeded := [name for name, limit in given.items() if measured[name] > limit]:
        raise BudgetExceeded(" ".join(_sentence(cost, name, given[name]) for name in exceeded))


def _sentence(cost: CallCost, name: str, limit: float) -> str:
    what, how = _WHAT_AND_HOW[name]
    measured = cost.per_request()[name]
    total = round(measured * cost.num_requests)
    kinds = ""
    if name == "survivors":
        kinds = "".join(f", {n:,} {kind}" for kind, n in list(cost.survivors_by_type.items())[:3])
    return (
        f"{cost.name}: {measured:.6g} {what} per request, budget {limit:g} "
        f"({total:,} in a call of {cost.num_requests:,}{kinds}); {how} or raise the budget."
        f"{_where(cost, name)}"
    )


def _where(cost: CallCost, name: str) -> str:
    """The functions that took most of a count; what is alive at once is told by what was made."""
    if name == "survivors":
        return ""
    of, made = ("bytecodes", "") if name == "bytecodes" else ("allocations", " made")
    # More are made than are alive at once.
    whole = "In all" if name == "peak" else "Of them"
    ranked = sorted(cost.functions, key=lambda each: -getattr(each, of))
    least = _LEAST_SHARE * (getattr(cost, of) or 0)
    named = [
        f"{getattr(each, of):,}{made} in {each.name} ({each.file}:{_line(each, of)})"
        for each in ranked[:3]
        if getattr(each, of) > least
    ]
    return f" {whole} {', '.join(named)}." if named else ""


def _line(function: "FunctionCost", of: str) -> int:
    """The line of a function that took most."""
    return max(function.lines, key=lambda line: getattr(line, of)).line
