"""The chains of calls that flame graphs are drawn from, and what each has counted."""

from typing import Literal, NamedTuple

from harness.trial.step_costs import StepCosts

Count = Literal["bytecodes", "allocations"]
COUNTS: tuple[Count, ...] = ("bytecodes", "allocations")
"""What a stack can be counted in, by the field of a `Call` that has it."""


class Stack(NamedTuple):
    """``functions``: places in `StepCosts.functions`, the outermost caller's first.

    ``own``: what the innermost function counted itself, over all steps that were traced.
    """

    functions: tuple[int, ...]
    own: int


def stacks(costs: StepCosts, count: Count) -> list[Stack]:
    """A stack for each call that counted anything; their counts add up to the functions' own."""
    chains: list[tuple[int, ...]] = []
    for call in costs.calls:
        above = chains[call.parent] if call.parent >= 0 else ()
        chains.append((*above, call.function))
    own = [call.bytecodes if count == "bytecodes" else call.allocations for call in costs.calls]
    return [Stack(chain, each) for chain, each in zip(chains, own, strict=True) if each]
