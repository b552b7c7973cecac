"""The heap: as many tracked objects as asked for, without a collection of the ballast's own."""

import gc
from collections.abc import Iterator

import pytest

from harness.collector import heap
from harness.collector.state import read_state

pytestmark = pytest.mark.usefixtures("frozen_heap")

BUILT = 60_000


def tracked() -> int:
    gc.collect()
    return read_state().tracked_objects


@pytest.fixture(autouse=True)
def released() -> Iterator[None]:
    yield
    heap.release("engine")


@pytest.mark.parametrize("missing", [1, 2, 63, 64, 65, 66, 1000, BUILT])
def test_the_target_is_reached_and_released(missing: int) -> None:
    before = tracked()
    assert abs(heap.top_up("engine", before + missing, seed=1) - missing) <= 20
    assert abs(tracked() - before - missing) <= 20
    heap.release("engine")
    assert abs(tracked() - before) <= 20


def test_it_tops_up_what_is_there() -> None:
    before = tracked()
    heap.top_up("engine", before + 5000, seed=1)
    assert abs(heap.top_up("engine", before + 9000, seed=2) - 4000) <= 20
    assert abs(tracked() - before - 9000) <= 20


@pytest.mark.parametrize("target", [0, 1000])
def test_a_heap_that_is_large_enough_gets_none(target: int) -> None:
    before = tracked()
    assert heap.top_up("engine", target, seed=1) == 0
    assert abs(tracked() - before) <= 20


@pytest.mark.parametrize("enabled", [True, False])
def test_nothing_is_collected_by_itself_and_the_switch_stays(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    before = [generation["collections"] for generation in gc.get_stats()]
    heap.top_up("engine", tracked() + BUILT, seed=1)
    after = [generation["collections"] for generation in gc.get_stats()]
    left = gc.isenabled()
    gc.enable()
    assert left == enabled
    assert after[2] - before[2] == 3  # `tracked`, and one on either side of the building
    assert after[0] - before[0] <= 1


def test_the_ballast_is_old() -> None:
    heap.top_up("engine", tracked() + BUILT, seed=1)
    assert len(gc.get_objects(generation=2)) > BUILT
    assert gc.get_count()[0] < 1000


def test_a_full_pass_is_one_full_collection() -> None:
    before = gc.get_stats()[2]["collections"]
    assert heap.full_pass_seconds("engine") > 0
    assert gc.get_stats()[2]["collections"] == before + 1


SPARES = """
import gc, json
from harness.collector import heap

heap.top_up("", 100_000, 1)
heap.spare_until_top_up()
spared = len(gc.get_objects())
heap.top_up("", 101_000, 1)
print(json.dumps([spared, len(gc.get_objects()), gc.get_freeze_count()]))
"""


def test_a_spared_heap_is_passed_over_again_after_the_next_top_up(fresh_interpreter):
    spared, tracked, frozen = fresh_interpreter(SPARES)
    assert spared < 1000
    assert abs(tracked - 101_000) < 100
    assert frozen < 1000  # 3.12 and newer move their immortal objects there
