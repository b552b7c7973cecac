"""Where the collector's counters stand when a window opens."""

import gc
import json
from collections.abc import Iterator

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from harness.collector.phase import release_held, set_counter_phase
from harness.collector.state import restore, snapshot


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = snapshot()
    gc.freeze()  # full passes are cheap then
    yield
    release_held("engine")
    restore(before)


def counts_at(seed: int | None, limits: tuple[int, int, int]) -> tuple[int, int, int]:
    """The counters after a full collection and the phase, before anything can move them."""
    gc.collect()
    gc.enable()
    gc.set_threshold(*limits)
    set_counter_phase("engine", seed)
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
    limits=st.tuples(st.integers(100, 5000), st.integers(1, 50), st.integers(1, 50)),
)
def test_a_seed_puts_each_counter_at_a_share_of_its_threshold(
    seed: int, limits: tuple[int, int, int]
) -> None:
    reached = counts_at(seed, limits)
    assert all(count <= limit + 20 for count, limit in zip(reached, limits, strict=True))
    doubled = counts_at(seed, (limits[0] * 2, limits[1], limits[2]))
    assert doubled[0] == pytest.approx(2 * reached[0], abs=60)
    assert doubled[1:] == reached[1:]


def test_seeds_spread_over_the_thresholds() -> None:
    reached = [counts_at(seed, (700, 10, 10)) for seed in range(60)]
    assert len({gen0 for gen0, _, _ in reached}) > 40
    assert {gen1 for _, gen1, _ in reached} == set(range(11))
    assert {gen2 for _, _, gen2 in reached} == set(range(1, 11))


def test_a_huge_threshold_does_not_make_a_huge_heap() -> None:
    reached = [counts_at(seed, (2**31 - 1, 10, 10)) for seed in range(3)]
    assert all(gen0 < 70_000 for gen0, _, _ in reached)


@pytest.mark.parametrize("seed", [None, 3])
def test_with_the_collector_off_nothing_is_collected_nor_held(seed: int | None) -> None:
    gc.collect()
    gc.disable()
    before = gc.get_stats(), gc.get_count()
    set_counter_phase("engine", seed)
    after = gc.get_stats(), gc.get_count()
    assert after[0] == before[0]
    assert after[1][0] - before[1][0] < 20


NEXT_COLLECTION = """
import gc, json
from harness.collector.phase import set_counter_phase
distances = []
for seed in json.loads(input()):
    made = None
    gc.collect()
    set_counter_phase("engine", seed)
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
