"""What each function takes more or less in one version than in another."""

from collections.abc import Iterable, Sequence

from gcbench.function_costs import FunctionCost, LineCost
from harness.explain.pairing import pair_functions
from harness.explain.result import Costs, FunctionChange, FunctionPlace
from harness.trial.step_costs import StepCosts


def function_changes(before: StepCosts, after: StepCosts) -> list[FunctionChange]:
    """Each function of either side in one of them; sums over them are the sides' own."""
    then, now = any_stage(before.functions), any_stage(after.functions)
    return [
        FunctionChange(
            kind=each.kind,
            stage=[*(now[i].stage for i in each.after), *(then[i].stage for i in each.before)][0],
            before=_where([then[i] for i in each.before]),
            after=_where([now[i] for i in each.after]),
            costs_before=_costs([then[i] for i in each.before]),
            costs_after=_costs([now[i] for i in each.after]),
            does_alike=sorted(then[i].code for i in each.before)
            == sorted(now[i].code for i in each.after),
        )
        for each in pair_functions(then, now)
    ]


def any_stage(functions: Iterable[FunctionCost]) -> list[FunctionCost]:
    """Functions over all stages, each under the one in which it executes most."""
    merged: dict[tuple[str, str, int], FunctionCost] = {}
    for each in sorted(functions, key=lambda each: -each.bytecodes):
        where = (each.file, each.name, each.line)
        merged[where] = _sum(merged[where], each) if where in merged else each
    return list(merged.values())


def _sum(one: FunctionCost, other: FunctionCost) -> FunctionCost:
    lines = {line.line: line for line in one.lines}
    for line in other.lines:
        known = lines.get(line.line, LineCost(line.line, 0, 0, 0))
        lines[line.line] = LineCost(
            line.line,
            known.bytecodes + line.bytecodes,
            known.allocations + line.allocations,
            known.net + line.net,
        )
    return one._replace(
        calls=one.calls + other.calls,
        bytecodes=one.bytecodes + other.bytecodes,
        allocations=one.allocations + other.allocations,
        net=one.net + other.net,
        all_bytecodes=one.all_bytecodes + other.all_bytecodes,
        all_allocations=one.all_allocations + other.all_allocations,
        lines=[lines[line] for line in sorted(lines)],
    )


def _where(functions: Sequence[FunctionCost]) -> list[FunctionPlace]:
    return [FunctionPlace(each.file, each.name, each.line) for each in functions]


def _costs(functions: Sequence[FunctionCost]) -> Costs:
    return Costs(
        sum(each.calls for each in functions),
        sum(each.bytecodes for each in functions),
        sum(each.allocations for each in functions),
        sum(each.net for each in functions),
    )
