"""The pytest plug-in: a fixture that holds a call to a budget per request."""

from collections.abc import Callable

import pytest

from gcbench.budget import Limits, check_budget, measure_within
from gcbench.call_cost import CallCost


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
