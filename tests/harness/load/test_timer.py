"""Timers that fire at absolute moments, never early, and the latest setting holds."""

import asyncio
from time import perf_counter_ns

import pytest
import uvloop

from harness.load.timer import Timer


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop])
def loop(request):
    made = request.param()
    yield made
    made.close()


def test_it_fires_once_and_not_before_its_moment(loop):
    fired = []
    over = loop.create_future()
    timer = Timer(loop, lambda: (fired.append(perf_counter_ns()), over.set_result(None)))
    moment = perf_counter_ns() + 3_300_000
    timer.set(perf_counter_ns() + 60_000_000_000)
    timer.set(moment)
    loop.run_until_complete(over)
    timer.close()
    assert len(fired) == 1
    assert fired[0] >= moment


def test_a_moment_that_has_gone_is_now(loop):
    over = loop.create_future()
    timer = Timer(loop, lambda: over.set_result(None))
    timer.set(perf_counter_ns() - 1_000_000_000)
    loop.run_until_complete(over)
    timer.close()


def test_a_closed_timer_does_not_fire(loop):
    fired, over = [], loop.create_future()
    closed = Timer(loop, lambda: fired.append(None))
    closed.set(perf_counter_ns())
    closed.close()
    other = Timer(loop, lambda: over.set_result(None))
    other.set(perf_counter_ns() + 1_000_000)
    loop.run_until_complete(over)
    other.close()
    assert fired == []
