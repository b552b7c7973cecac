"""Dealt out over processes, a schedule stays the schedule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import schedule

from harness.load.deal import dealt, own_previous_turn, share_of
from harness.trial.arrival_fidelity import check_delivered
from harness.trial.arrivals import nanoseconds
from harness.trial.recorder import Recorder
from workloads import catalog
from workloads.recipe.arrivals import parse_arrivals


@st.composite
def turns(draw):
    """Each request of no conversation, or of one of the earlier ones."""
    count = draw(st.integers(1, 30))
    return np.array([draw(st.integers(-1, i - 1)) for i in range(count)], np.int32)


@given(turns(), st.integers(1, 6))
def test_every_request_is_dealt_once_and_with_the_turn_before_it(previous, num_processes):
    has_turns = (previous >= 0).any()
    made = schedule([1] * len(previous), previous_turn=previous if has_turns else np.zeros(0))
    parts = [dealt(made, process, num_processes) for process in range(num_processes)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(previous)))
    for part in parts:
        assert (np.diff(part) > 0).all()
        own = own_previous_turn(made, part)
        if has_turns:
            assert [part[place] if place >= 0 else -1 for place in own] == previous[part].tolist()
        else:
            assert (part % num_processes == part[:1] % num_processes).all()


@given(st.integers(0, 1000), st.integers(1, 20))
def test_shares_add_up_and_differ_by_one_at_most(total, num_processes):
    shares = [share_of(total, process, num_processes) for process in range(num_processes)]
    assert sum(shares) == total
    assert max(shares) - min(shares) <= 1


@pytest.mark.parametrize("num_processes", [1, 4])
@pytest.mark.parametrize("arrivals", ["constant:50", "poisson:50", "gamma:50:0.25"])
def test_what_processes_send_together_passes_the_self_check(arrivals, num_processes):
    workload = catalog.load_workload("chat")
    made = type(workload)(
        **{name: getattr(workload, name) for name in workload.__struct_fields__}
        | {"arrivals": parse_arrivals(arrivals), "num_requests": 1000}
    ).realise(3)
    due_ns = 10**9 + nanoseconds(made.arrival_seconds)
    requests = Recorder(made.num_requests, 0).requests
    requests.scheduled_ns[:] = due_ns
    rng = np.random.default_rng(0)
    for process in range(num_processes):
        own = dealt(made, process, num_processes)
        requests.sent_ns[own] = due_ns[own] + rng.exponential(80_000, len(own)).astype(np.int64)
    assert check_delivered(made, requests).sent.wrong == []
    # Each process playing the whole rate by itself would not be.
    requests.sent_ns[:] = due_ns[0] + (due_ns - due_ns[0]) // 2
    assert check_delivered(made, requests).sent.wrong
