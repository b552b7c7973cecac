"""The C functions of which a change of machine instructions is mostly made."""

from collections.abc import Sequence

from harness.axes import Cell
from harness.experiment.outcomes import Trials
from harness.tracking.gate.plan import INSTRUCTIONS, GatePair
from harness.tracking.gate.result import CFunctionChange, ExactChange

PER_STEP = "instructions_per_request_step"
_MOST = 5
_LEAST = 0.01
"""Share of the change: where memory lies, and so what an allocator does, differs by less."""


def c_function_changes(
    counted: Trials, each: GatePair, exact: Sequence[ExactChange]
) -> list[CFunctionChange]:
    """Those that changed most the way their sum has, at most five; none where that is the same."""
    total = next((change for change in exact if change.metric == PER_STEP), None)
    if total is None or total.verdict == "same":
        return []
    more = total.after - total.before
    before, after = (_by_function(counted, cell) for cell in (each.base, each.head))
    changes = [
        CFunctionChange(
            function=function,
            library=library,
            before=before.get((function, library), 0.0),
            after=after.get((function, library), 0.0),
        )
        for function, library in before | after
    ]
    changes.sort(key=lambda change: change.more / more, reverse=True)
    return [change for change in changes[:_MOST] if change.more / more >= _LEAST]


def _by_function(counted: Trials, cell: Cell) -> dict[tuple[str, str], float]:
    result = counted.counted_in(INSTRUCTIONS, cell)
    costs = result.c_functions if result else []
    return {(cost.name, cost.library): cost.instructions for cost in costs}
