"""Which functions and lines matter most: by bytecodes, or by the tracked objects they make."""

from collections.abc import Callable
from typing import get_args

from gcbench.function_costs import FunctionCost
from harness.explain.result import By, Costs, FunctionChange, LineChange, Side


def amount(by: By) -> Callable[[Costs | FunctionCost], int]:
    """What functions are ranked by."""
    return (lambda each: each.bytecodes) if by == "bytecodes" else (lambda each: each.allocations)


def by_change(
    changes: list[FunctionChange], before: Side, after: Side, by: By
) -> list[FunctionChange]:
    """The largest change first, whether it is more or less; none that is nothing."""
    of = amount(by)

    def change(each: FunctionChange) -> float:
        now, then = of(each.costs_after), of(each.costs_before)
        return now / after.costs.num_rows - then / before.costs.num_rows

    return sorted(filter(change, changes), key=lambda each: -abs(change(each)))


def part_of_step(before: Side, after: Side) -> Callable[[float, float], float]:
    """How much of the larger side's step so many bytecodes and objects are, the larger share.

    Both per request and step; their signs do not matter.
    """
    bytecodes, objects = (
        max(
            sum(map(amount(by), side.costs.functions)) / side.costs.num_rows
            for side in (before, after)
        )
        for by in get_args(By)
    )
    return lambda more, made: max(
        abs(more) / bytecodes if bytecodes else 0.0, abs(made) / objects if objects else 0.0
    )


def by_line_change(lines: list[LineChange], by: By) -> list[LineChange]:
    """The largest change first; for objects one that stays to the end of its step goes before."""
    if by == "bytecodes":
        return sorted(lines, key=lambda each: -abs(each.bytecodes))
    return sorted(
        (each for each in lines if each.allocations or each.net),
        key=lambda each: (-abs(each.allocations), -abs(each.net)),
    )
