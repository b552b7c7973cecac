"""The pytest plug-in: fixtures that hold a call to a budget, or to what it did before."""

from collections.abc import Callable
from itertools import count

import pytest

from gcbench.baseline import Baseline
from gcbench.budget import Limits, check_budget, measure_within
from gcbench.call_cost import CallCost, measure_call


class GcBudget:
    """What the fixture ``gc_budget`` gives: called, it measures, records and checks."""

    def __init__(self, record: Callable[[str, object], None]) -> None:
        self._record = record

    def __call__(
        self,
        call: Callable[[], object],
        num_requests: int,
        *,
        survivors: float | None = None,
        peak: float | None = None,
        allocations: float | None = None,
        bytecodes: float | None = None,
    ) -> CallCost:
        """Fail the test where ``call`` goes over a limit per request; what was measured, else.

        ``call`` handles a step of ``num_requests`` requests. Raises as
        `gcbench.budget.measure_within` and `check_budget`.
        """
        __tracebackhide__ = True
        limits = Limits(survivors, peak, allocations, bytecodes)
        cost = measure_within(limits, call, num_requests)
        for name, figure in cost.per_request().items():
            self._record(f"{name}_per_request", figure)
        check_budget(cost, limits)
        return cost


@pytest.fixture
def gc_budget(record_property: Callable[[str, object], None]) -> GcBudget:
    """Hold a call to at most so many tracked objects and bytecodes per request.

    gc_budget(call, num_requests, survivors=, peak=, allocations=, bytecodes=)
    """
    return GcBudget(record_property)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--gc-update``."""
    words = "take what gc_baseline counts for right, in gc_baseline.json beside the tests"
    parser.addoption("--gc-update", action="store_true", help=words)


@pytest.fixture
def gc_baseline(request: pytest.FixtureRequest) -> Callable[..., CallCost]:
    """Fail where a call counts more than its stored baseline: gc_baseline(call, num_requests=1).

    Called again in a test it has a baseline of its own, by its number.
    """
    test, numbers = f"{request.path.name}::{request.node.name}", count(1)

    def hold(call: Callable[[], object], num_requests: int = 1) -> CallCost:
        __tracebackhide__ = True
        cost = measure_call(call, num_requests)
        number = next(numbers)
        name = test if number == 1 else f"{test} call {number}"
        baseline = Baseline(request.path.parent, name)
        if request.config.getoption("gc_update"):
            if hasattr(request.config, "workerinput"):
                raise pytest.UsageError("--gc-update writes one file; run it without -n")
            baseline.store(cost, measure_call(call, num_requests))
        else:
            baseline.check(cost)
        return cost

    return hold
