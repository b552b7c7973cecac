"""What the probe records is what the collector did, and recording leaves the collector alone."""

import gc
import time
from threading import Thread
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from harness.collector.policy import DEFAULT_THRESHOLDS
from harness.collector.probe import Probe
from harness.collector.state import restore, snapshot

# Collections are made by hand: one that comes by itself, by what ran before, would be one more.
pytestmark = pytest.mark.usefixtures("frozen_heap", "no_collector")


def collections() -> list[int]:
    return [generation["collections"] for generation in gc.get_stats()]


@examples(60)
@given(
    limits=st.tuples(st.integers(1, 300), st.integers(0, 12), st.integers(0, 12)),
    batches=st.lists(st.tuples(st.integers(0, 800), st.booleans()), max_size=20),
    by_hand=st.lists(st.integers(0, 2), max_size=4),
)
def test_events_equal_the_statistics_of_the_collector(
    limits: tuple[int, int, int], batches: list[tuple[int, bool]], by_hand: list[int]
) -> None:
    saved = snapshot()
    gc.disable()
    gc.set_threshold(*limits)
    kept: list[Any] = []
    probe = Probe()
    probe.start()
    before = collections()
    gc.enable()
    for size, keep in batches:
        made: list[Any] = [[] for _ in range(size)]
        made.append(made)
        if keep:
            kept.append(made)
    for generation in by_hand:
        gc.collect(generation)
    gc.disable()
    after = collections()
    probe.stop()
    restore(saved)
    counted = np.bincount(probe.events().generation, minlength=3).tolist()
    assert counted == [b - a for a, b in zip(before, after, strict=True)]
    assert probe.dropped == 0


def test_times_are_those_of_the_collection_and_collected_what_it_freed() -> None:
    with Probe() as probe:
        stamps = []
        freed = []
        for generation in (0, 1, 2):
            cycle: list[Any] = []
            cycle.append(cycle)
            del cycle
            began = time.perf_counter_ns()
            freed.append(gc.collect(generation))
            stamps.append((began, time.perf_counter_ns()))
    events = probe.events()
    assert events.generation.tolist() == [0, 1, 2]
    assert events.collected.tolist() == freed
    assert min(freed) >= 1
    for (began, ended), start, duration in zip(
        stamps, events.start_ns.tolist(), events.duration_ns.tolist(), strict=True
    ):
        assert began <= start <= start + duration <= ended
    assert [column.dtype for column in events] == [np.int8, *[np.int64] * 4]


def test_what_other_callbacks_take_is_in_no_pause() -> None:
    """Those that were there before, at either end of a collection."""
    starts: list[int] = []
    stops: list[int] = []

    def other(phase: str, info: dict[str, Any]) -> None:
        began = time.perf_counter_ns()
        while time.perf_counter_ns() < began + 50_000:
            pass
        starts.append(time.perf_counter_ns()) if phase == "start" else stops.append(began)

    before = list(gc.callbacks)
    gc.callbacks.append(other)
    try:
        with Probe() as probe:
            for generation in (0, 1, 2, 0):
                gc.collect(generation)
            assert gc.callbacks.index(other) == len(before) + 1
    finally:
        gc.callbacks.remove(other)
    assert list(gc.callbacks) == before
    events = probe.events()
    assert len(events.start_ns) == 4
    assert (events.start_ns >= starts).all()
    assert (events.start_ns + events.duration_ns <= stops).all()


class Waiting:
    """Garbage whose end waits for work on another thread."""

    def __init__(self) -> None:
        self.itself = self
        self.worked_ns: list[int] = []

    def __del__(self) -> None:
        def work(worked_ns: list[int] = self.worked_ns) -> None:
            began = time.thread_time_ns()
            sum(range(200_000))
            worked_ns.append(time.thread_time_ns() - began)

        thread = Thread(target=work)
        thread.start()
        thread.join()


def test_a_pause_in_which_the_thread_had_no_core_is_told_from_work() -> None:
    waiting = Waiting()
    worked_ns = waiting.worked_ns
    del waiting
    with Probe() as probe:
        gc.collect()
    ((duration, cpu),) = zip(probe.events().duration_ns, probe.events().cpu_ns, strict=True)
    assert cpu > 0
    # The thread that waits has something to do too, at the same time on another core.
    assert duration - cpu >= worked_ns[0] / 2


def test_a_full_probe_counts_what_it_drops() -> None:
    with Probe(capacity=3) as probe:
        for generation in (2, 1, 0, 1, 2):
            gc.collect(generation)
        assert probe.events().generation.tolist() == [2, 1, 0]
        assert probe.dropped == 2


def test_start_and_stop_twice_are_once() -> None:
    before = list(gc.callbacks)
    probe = Probe()
    probe.stop()
    probe.start()
    probe.start()
    gc.collect(0)
    probe.stop()
    probe.stop()
    assert list(gc.callbacks) == before
    gc.collect(0)
    with probe:
        gc.collect(1)
    assert probe.events().generation.tolist() == [0, 1]


def test_a_window_that_raises_leaves_no_callback() -> None:
    before = list(gc.callbacks)
    with pytest.raises(KeyError), Probe():
        raise KeyError
    assert list(gc.callbacks) == before


def test_events_are_a_copy() -> None:
    with Probe() as probe:
        gc.collect(0)
        events = probe.events()
        gc.collect(2)
    assert events.generation.tolist() == [0]


ALLOCATIONS = """
import gc, sys
from harness.collector.probe import Probe
gc.collect()
gc.disable()
probe = Probe()
probe.start()
end, *_, begin = gc.callbacks
probe.stop()
infos = [{"generation": g, "collected": 10**6, "uncollectable": 0} for g in (0, 1, 2)]
before, before = gc.get_count()[0], gc.get_count()[0]  # the first makes a tuple to be reused
for _ in range(3000):
    for info in infos:
        end("start", info)
        begin("start", info)
        end("stop", info)
        begin("stop", info)
after = gc.get_count()[0]
print(after - before)
"""


def test_recording_allocates_nothing_that_is_tracked(fresh_interpreter) -> None:
    assert fresh_interpreter(ALLOCATIONS) == 0


LOOP = """
import gc, json, sys
from harness.collector.window import close_window, open_window
shape, probe = sys.argv[1], sys.argv[2] == "probe"
make = {"list": lambda: [], "tuple": lambda: ([],), "dict": lambda: {"key": []},
        "kept dict": lambda: {}}[shape]
assert open_window("engine", "default", 1024, probe, None) == ""
kept = []
for step in range(300):
    batch = [make() for _ in range(1024)]
    kept.append(batch if shape == "kept dict" else batch[: step % 7])
print(json.dumps(close_window("engine").collections))
"""


@pytest.mark.parametrize("shape", ["list", "tuple", "dict"])
def test_the_probe_moves_no_count_but_the_one_at_the_edge(shape: str, fresh_interpreter) -> None:
    without = fresh_interpreter(LOOP, shape, "none")
    probed = fresh_interpreter(LOOP, shape, "probe")
    assert without[0] > 0
    assert max(abs(a - b) for a, b in zip(without, probed, strict=True)) <= 1


def test_where_new_dictionaries_are_kept_it_saves_one_allocation_a_collection(
    fresh_interpreter,
) -> None:
    without = fresh_interpreter(LOOP, "kept dict", "none")
    probed = fresh_interpreter(LOOP, "kept dict", "probe")
    saved = without[0] / DEFAULT_THRESHOLDS[0]
    assert 0 <= without[0] - probed[0] <= 1 + saved
