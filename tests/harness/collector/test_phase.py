"""Where the collector's counters stand when a window opens."""

import gc
import json
from collections.abc import Iterator

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from harness.collector.phase import Phase, release_held, set_counter_phase
from harness.collector.state import restore, snapshot


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = snapshot()
    gc.freeze()  # full passes are cheap then
    yield
    release_held("engine")
    restore(before)


def counts_at(
    seed: int | None, limits: tuple[int, int, int], cycle: float = 0.5
) -> tuple[int, int, int]:
    """The counters after a full collection and the phase, before anything can move them."""
    gc.collect()
    gc.enable()
    gc.set_threshold(*limits)
    set_counter_phase("engine", None if seed is None else Phase(seed, cycle))
    gc.disable()
    return gc.get_count()


def test_the_fixed_phase_is_always_the_same() -> None:
    counts_at(7, (700, 10, 10))
    reached = {counts_at(None, (700, 10, 10)) for _ in range(5)}
    assert len(reached) == 1
    gen0, gen1, gen2 = reached.pop()
    assert gen0 < 20
    assert (gen1, gen2) == (0, 1)


@examples(30)
@given(
    seed=st.integers(0, 2**32),
    cycle=st.floats(0, 1, exclude_max=True),
    limits=st.tuples(st.integers(100, 5000), st.integers(1, 50), st.integers(1, 50)),
)
def test_a_seed_puts_each_counter_at_a_share_of_its_threshold(
    seed: int, cycle: float, limits: tuple[int, int, int]
) -> None:
    reached = counts_at(seed, limits, cycle)
    assert all(count <= limit + 20 for count, limit in zip(reached, limits, strict=True))
    assert reached[2] == max(1, int(cycle * (limits[2] + 1)))
    doubled = counts_at(seed, (limits[0] * 2, limits[1], limits[2]), cycle)
    assert doubled[0] == pytest.approx(2 * reached[0], abs=60)
    assert doubled[1:] == reached[1:]


def test_seeds_spread_over_the_thresholds() -> None:
    reached = [counts_at(seed, (700, 10, 10)) for seed in range(60)]
    assert len({gen0 for gen0, _, _ in reached}) > 40
    assert {gen1 for _, gen1, _ in reached} == set(range(11))
    evenly = [counts_at(7, (700, 10, 10), n / 60)[2] for n in range(60)]
    assert sorted(evenly) == evenly
    assert set(evenly) == set(range(1, 11))


def test_a_huge_threshold_does_not_make_a_huge_heap() -> None:
    reached = [counts_at(seed, (2**31 - 1, 10, 10)) for seed in range(3)]
    assert all(gen0 < 70_000 for gen0, _, _ in reached)


@pytest.mark.parametrize("seed", [None, 3])
def test_with_the_collector_off_nothing_is_collected_nor_held(seed: int | None) -> None:
    gc.collect()
    gc.disable()
    before = gc.get_stats(), gc.get_count()
    set_counter_phase("engine", None if seed is None else Phase(seed, 0.9))
    after = gc.get_stats(), gc.get_count()
    assert after[0] == before[0]
    assert after[1][0] - before[1][0] < 20


NEXT_COLLECTION = """
import gc, json
from harness.collector.phase import Phase, set_counter_phase
distances = []
for seed in json.loads(input()):
    made = None
    gc.collect()
    set_counter_phase("engine", None if seed is None else Phase(seed, 0.0))
    before = gc.get_stats()[0]["collections"]
    made = []
    while gc.get_stats()[0]["collections"] == before:
        made.append([])
    distances.append(len(made))
print(json.dumps(distances))
"""


def test_the_next_collection_comes_sooner_or_later_by_the_seed(fresh_interpreter) -> None:
    script = NEXT_COLLECTION.replace("input()", repr(json.dumps([None, None, 1, 2, 3, 1])))
    fixed, again, first, second, third, repeated = fresh_interpreter(script)
    assert fixed == pytest.approx(again, abs=5)
    assert len({first, second, third}) == 3
    assert max(first, second, third) < fixed
    assert first == pytest.approx(repeated, abs=5)


NEXT_FULL_PASS = """
import gc, json
from harness.collector.phase import Phase, set_counter_phase
gc.set_threshold(700, 10, 10)  # 3.13 has 2,000
old = [[] for _ in range(600_000)]
reached = {}
for frozen in (False, True):
    for cycle in (0.0, 0.25, 0.5, 0.75, 0.95):
        gc.unfreeze()
        gc.collect()
        if frozen:
            gc.freeze()
        set_counter_phase("engine", Phase(3, cycle))
        kept, full = [], gc.get_stats()[2]["collections"]
        while gc.get_stats()[2]["collections"] == full and len(kept) < 300_000:
            kept.append([])
        reached[f"{frozen} {cycle}"] = len(kept)
        del kept
print(json.dumps(reached))
"""


def test_the_next_full_pass_is_as_far_as_the_cycle_says(fresh_interpreter) -> None:
    """After a quarter as many newcomers as are old, or, where the old are frozen, after 11 young
    collections of generation 1."""
    reached = fresh_interpreter(NEXT_FULL_PASS)
    quarter, between = reached["False 0.0"], 701 * 11  # objects to a collection of generation 1
    assert 150_000 <= quarter <= 170_000  # some more are old, and it waits for a young collection
    for cycle in (0.0, 0.25, 0.5, 0.75, 0.95):
        assert reached[f"False {cycle}"] == pytest.approx((1 - cycle) * quarter, abs=2 * between)
        left = 11 - max(1, int(cycle * 11))
        assert reached[f"True {cycle}"] == pytest.approx(left * between, abs=between + 99)
