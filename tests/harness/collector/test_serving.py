"""A collector's policy for as long as a process lives, and what it comes to meanwhile."""

import gc
from types import SimpleNamespace

import pytest

from harness.collector.policy import DEFAULT_THRESHOLDS
from harness.collector.probe import Probe
from harness.collector.serving import PauseTotals, settle, totals, unsettle


@pytest.fixture
def process():
    yield SimpleNamespace(role="engine", while_device_busy=None)
    unsettle()


def test_a_policy_is_in_force_until_it_is_put_back(process):
    before = gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()
    assert settle(process, "freeze+threshold:900/20/30", 8, 0, 0) == ""
    assert (gc.isenabled(), gc.get_threshold()) == (True, (900, 20, 30))
    assert gc.get_freeze_count() > 1000
    unsettle()
    assert (gc.isenabled(), gc.get_threshold()) == before[:2]
    assert gc.get_freeze_count() <= before[2] + 1000  # 3.12 freezes its immortal ones by itself


def test_each_role_has_its_own(process):
    process.role = "frontend"
    assert settle(process, "threshold:1234@engine", 8, 0, 0) == ""
    assert gc.get_threshold() == DEFAULT_THRESHOLDS


def test_on_wait_gets_its_hook(process):
    assert settle(process, "on_wait@engine", 8, 0, 0) == ""
    assert not gc.isenabled()
    before = totals(process)["gc_collections"][0]
    process.while_device_busy()
    assert totals(process)["gc_collections"][0] == before + 1


def test_a_process_is_settled_once(process):
    assert settle(process, "default", 8, 0, 0) == ""
    with pytest.raises(RuntimeError, match="has been settled before"):
        settle(process, "default", 8, 0, 0)


def test_a_heap_is_topped_up_and_let_go(process):
    before = len(gc.get_objects())
    assert settle(process, "default", 8, before + 20_000, 0) == ""
    assert len(gc.get_objects()) >= before + 20_000
    unsettle()
    gc.collect()
    assert len(gc.get_objects()) < before + 10_000


def test_pauses_are_those_that_the_probe_sees():
    """Both see each collection, the totals from inside the probe: their pauses are the shorter."""
    pauses, probe = PauseTotals(), Probe()
    gc.disable()
    probe.start()
    pauses.start()
    before = [each["collections"] for each in gc.get_stats()]
    for generation, times in ((0, 7), (1, 3), (2, 2)):
        for _ in range(times):
            gc.collect(generation)
    pauses.stop()
    probe.stop()
    after = [each["collections"] for each in gc.get_stats()]
    gc.enable()
    assert [b - a for a, b in zip(before, after, strict=True)] == [7, 3, 2]
    events = probe.events()
    for generation, seconds in enumerate(pauses.seconds()):
        seen = events.duration_ns[events.generation == generation].sum() / 1e9
        assert 0 < seconds <= seen


def test_summing_makes_no_tracked_object(process):
    assert settle(process, "disabled", 8, 0, 0) == ""
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(200):
        gc.collect(0)
    assert len(gc.get_objects()) < before + 100, "another thread may make some"
