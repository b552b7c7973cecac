"""A budget is kept by just its limit, and a function is named by more than a twentieth."""

import pytest

from gcbench.budget import BudgetExceeded, Limits, check_budget
from gcbench.call_cost import CallCost
from gcbench.function_costs import FunctionCost, LineCost


def function(name: str, bytecodes: int) -> FunctionCost:
    lines = [LineCost(1, bytecodes, 0, 0)]
    return FunctionCost("stage", "a.py", name, 1, 1, bytecodes, 0, 0, bytecodes, 0, lines, "")


def cost(*functions: FunctionCost) -> CallCost:
    total = sum(each.bytecodes for each in functions)
    return CallCost("step", 10, 0, {}, 0, 0, total, list(functions))


def test_a_budget_is_kept_by_just_its_limit():
    of = cost(function("f", 290))
    check_budget(of, Limits(bytecodes=29))
    with pytest.raises(BudgetExceeded, match="29 bytecodes per request, budget 28"):
        check_budget(of, Limits(bytecodes=28.9))


@pytest.mark.parametrize(("bytecodes", "is_named"), [(50, False), (51, True)])
def test_a_function_of_more_than_a_twentieth_is_named(bytecodes, is_named):
    of = cost(function("large", 1000 - bytecodes), function("small", bytecodes))
    with pytest.raises(BudgetExceeded) as raised:
        check_budget(of, Limits(bytecodes=1))
    assert ("in small" in str(raised.value)) == is_named
