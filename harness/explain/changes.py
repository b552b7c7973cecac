"""What each function takes more or less in one version than in another."""

from collections.abc import Sequence

from gcbench.function_costs import FunctionCost
from harness.explain.pairing import pair
from harness.explain.result import Costs, FunctionChange, Where
from harness.trial.step_costs import StepCosts


def function_changes(before: StepCosts, after: StepCosts) -> list[FunctionChange]:
    """Each function of either side in one of them; sums over them are the sides' own."""
    return [
        FunctionChange(
            kind=each.kind,
            stage=_stage([after.functions[i] for i in each.after])
            or _stage([before.functions[i] for i in each.before]),
            before=_where([before.functions[i] for i in each.before]),
            after=_where([after.functions[i] for i in each.after]),
            costs_before=_costs([before.functions[i] for i in each.before]),
            costs_after=_costs([after.functions[i] for i in each.after]),
        )
        for each in pair(before.functions, after.functions)
    ]


def _stage(functions: Sequence[FunctionCost]) -> str:
    return functions[0].stage if functions else ""


def _where(functions: Sequence[FunctionCost]) -> list[Where]:
    return [Where(each.file, each.name, each.line) for each in functions]


def _costs(functions: Sequence[FunctionCost]) -> Costs:
    return Costs(
        sum(each.calls for each in functions),
        sum(each.bytecodes for each in functions),
        sum(each.allocations for each in functions),
        sum(each.net for each in functions),
    )
