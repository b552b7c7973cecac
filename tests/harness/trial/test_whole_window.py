"""Bytecodes of a whole window: what begins late, is asked beside a step, or runs elsewhere."""

import gc
import threading

import pytest
from small import engine, schedule

from harness.trial.client import TrialClient
from harness.trial.clock import VirtualClock
from harness.trial.modes import MODES
from harness.trial.step_costs import StepCosts
from harness.trial.watch import Extent

OF = schedule([40] * 4)
STEPS = 41
"""One for the prompts, and one for each token that follows."""


@pytest.fixture(autouse=True)
def _without_collections():
    """As in a trial: what others have in `gc.callbacks` would count."""
    gc.disable()
    yield
    gc.enable()


class Changed:
    """The built-in engine with loops in ``step``, from a step on, and where a client asks it
    whether any request is left; and with a thread that a step starts.
    """

    def __init__(
        self, *, late: int = 0, begins: int = 20, asked: int = 0, threads: int = 0
    ) -> None:
        self._engine = engine(OF)
        self._late, self._begins, self._asked, self._threads = late, begins, asked, threads
        self._num_steps = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    def step(self):
        """The engine's."""
        self._num_steps += 1
        if self._num_steps > self._begins:
            for _ in range(self._late):
                pass
        for _ in range(self._threads * (self._num_steps == 3)):
            thread = threading.Thread(target=sum, args=([1, 2],))
            thread.start()
            thread.join()
        return self._engine.step()

    def has_unfinished_requests(self) -> bool:
        """The engine's."""
        for _ in range(self._asked):
            pass
        return self._engine.has_unfinished_requests()


def costs(every: int, **changes: int) -> StepCosts:
    """What its steps are counted to cost."""
    served = Changed(**changes)
    watch = MODES["opcodes"].watch(served, Extent(4, every))
    asked = watch.has_unfinished_requests
    TrialClient(served, watch.step, OF, VirtualClock(), has_unfinished_requests=asked).run()
    watch.results([])
    assert watch.costs is not None
    return watch.costs


def bytecodes(every: int, **changes: int) -> int:
    """Of all that was traced."""
    return traced(costs(every, **changes))


def traced(found: StepCosts) -> int:
    """The same of these."""
    return sum(each.bytecodes for each in found.functions)


def test_each_step_is_traced_and_all_that_was_is_in_a_sample():
    found = costs(1)
    assert found.num_steps in (STEPS - 1, STEPS, STEPS + 1)
    assert sum(counted for _, counted in found.samples) == traced(found)
    assert sum(rows for rows, _ in found.samples) == found.num_rows == 40 * 4
    assert len(found.samples) == found.num_steps


@pytest.mark.parametrize("begins", [20, 30])
def test_a_loop_that_begins_late_counts_as_often_as_it_runs(begins):
    none, ten, thirty = (bytecodes(1, late=turns, begins=begins) for turns in (0, 10, 30))
    steps = costs(1).num_steps - begins
    assert (thirty - ten) % (20 * steps) == 0
    assert thirty - none == 3 * (ten - none) > 0
    assert bytecodes(0, late=30, begins=begins) == bytecodes(0, late=0, begins=begins)


def test_a_loop_where_a_client_asks_whether_any_is_left_counts_once_a_step():
    none, ten, thirty = (bytecodes(1, asked=turns) for turns in (0, 10, 30))
    asked = costs(1).num_steps + 1
    assert (thirty - ten) % (20 * asked) == 0
    assert thirty - none == 3 * (ten - none) > 0
    assert bytecodes(0, asked=10) > bytecodes(0), "in the few full steps, too"


def test_a_thread_that_a_step_starts_is_told_of():
    assert costs(1, threads=2).beside - costs(1).beside == 2


def test_a_thread_that_was_there_before_is_told_of_though_it_ends_with_the_engine():
    alone, is_over = costs(1).beside, threading.Event()
    thread = threading.Thread(target=is_over.wait)
    thread.start()
    served = Changed()
    watch = MODES["opcodes"].watch(served, Extent(4, 1))
    TrialClient(served, watch.step, OF, VirtualClock()).run()
    is_over.set()
    thread.join()
    watch.results([])
    assert watch.costs.beside - alone == 1
