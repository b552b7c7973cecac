"""The process that sends requests: when it must, and that it ends with us."""

import gc
import sys

import numpy as np
import psutil
import pytest
from processes import children
from small import engine, schedule

from harness.trial.client import TrialClient
from harness.trial.clock import PausedClock, RealClock, VirtualClock
from harness.trial.sender import Sender

DUE = np.array([0, 0, 0.001, 0.0015, 0.0015, 0.02, 0.021])


@pytest.fixture
def sender():
    before = children()
    made = Sender(DUE)
    yield made
    made.close()
    made.close()
    assert children() <= before


def test_each_is_stamped_once_and_not_before_it_is_due(sender):
    assert [sender.arrived(i, 10**30) for i in range(len(DUE))] == [0] * len(DUE)
    opened = sender.open()
    sender.wait_for(len(DUE) - 1)
    stamps = [sender.arrived(i, 10**30) for i in range(len(DUE))]
    assert stamps == sorted(stamps)
    assert all(stamp >= opened + round(due * 1e9) for stamp, due in zip(stamps, DUE, strict=True))
    assert stamps == [sender.arrived(i, 10**30) for i in range(len(DUE))]
    before = stamps[-1] - 1
    assert sender.arrived(len(DUE) - 1, before) == 0, "what comes later has not come yet"


def test_one_that_was_never_opened_ends_too(sender):
    assert sender.arrived(0, 10**30) == 0


def test_asking_makes_no_tracked_object(sender):
    sender.open()
    sender.wait_for(len(DUE) - 1)
    gc.collect()
    gc.disable()
    try:
        before = gc.get_count()[0]
        for _ in range(1000):
            sender.arrived(3, 10**30)
        grown = gc.get_count()[0] - before
    finally:
        gc.enable()
    assert grown < 100, "another thread may make some"


def test_a_sender_that_dies_is_not_waited_for(sender):
    child = max(psutil.Process().children(), key=psutil.Process.create_time)  # the sender's
    child.kill()
    child.wait()
    sender.open()
    with pytest.raises(RuntimeError, match="has ended too early"):
        sender.wait_for(0)


def test_a_sender_that_cannot_start_says_so(monkeypatch):
    before = children()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="could not start"):
        Sender(DUE)
    assert children() <= before


def clients(of):
    """The same schedule by each clock and from each place."""
    for clock in (VirtualClock(), RealClock(), PausedClock()):
        yield TrialClient(served := engine(of), served.step, of, clock)
    outside = Sender(of.arrival_seconds)
    try:
        yield TrialClient(served := engine(of), served.step, of, RealClock(), arrivals=outside)
    finally:
        outside.close()


@pytest.mark.parametrize("previous_turn", [[], [-1, -1, 0, -1, 2, 1, -1]], ids=["", "turns"])
def test_every_clock_serves_the_same(previous_turn):
    of = schedule([4, 30, 2, 9, 9, 1, 7], arrival_seconds=DUE, previous_turn=previous_turn)
    tokens = []
    for client in clients(of):
        client.run()
        tokens.append([each.tolist() for each in client.tokens])
        seen = client.recorder.requests
        assert (seen.sent_ns >= seen.scheduled_ns).all()
        assert (seen.queued_ns >= seen.sent_ns).all()
        assert (seen.first_ns > seen.queued_ns).all()
        for index, previous in enumerate(previous_turn):
            if previous >= 0:
                assert seen.sent_ns[index] >= seen.last_ns[previous]
    assert tokens == [tokens[0]] * 4
    assert list(map(len, tokens[0])) == of.output_lens.tolist()
