"""Hold a step to a budget of tracked objects: run with pytest, on any machine."""

import array

import pytest

from gcbench.budget import BudgetExceeded


class Columns:
    """Keeps the tokens of a batch in one array and makes no object for a request."""

    def __init__(self, num_requests: int) -> None:
        self.counts = array.array("i", [0]) * num_requests

    def step(self) -> None:
        """One token for each request."""
        for row in range(len(self.counts)):
            self.counts[row] += 1


class Lists:
    """Makes a list for each request, and a dictionary around it."""

    def __init__(self, num_requests: int) -> None:
        self.outputs = [{"token_ids": [0]} for _ in range(num_requests)]

    def step(self) -> None:
        """One token for each request."""
        self.outputs = [{"token_ids": [each["token_ids"][0] + 1]} for each in self.outputs]


def test_columns_make_no_object_per_request(gc_budget):
    gc_budget(Columns(1024).step, 1024, peak=0.1, survivors=0.1)


def test_lists_are_over_the_budget(gc_budget):
    with pytest.raises(BudgetExceeded, match="objects alive at once per request"):
        gc_budget(Lists(1024).step, 1024, peak=0.1)
