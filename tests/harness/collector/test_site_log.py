"""The lines whose objects collections find are those that made them, in the right order."""

import gc
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.collector.site_log import SiteLog
from harness.collector.sites import AllocationSite, CollectionSites

THIS = Path(__file__).name


@pytest.fixture(autouse=True)
def traced() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    tracemalloc.start(4)
    thresholds = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*thresholds)
    tracemalloc.stop()
    gc.unfreeze()


def lines_of(function: Callable[..., Any]) -> range:
    code = function.__code__
    return range(code.co_firstlineno, 1 + max(line for *_, line in code.co_lines() if line))


def looked_at(work: Callable[[], object]) -> CollectionSites:
    log = SiteLog()
    log.start()
    try:
        work()
    finally:
        found = log.stop()
    return found


def a_tuple(i: int) -> object:
    return (i, [])[:1]


def a_dictionary(i: int) -> object:
    return {str(i): gc}


def a_closure(i: int) -> object:
    return lambda: i  # annotations would be a function, too


def a_cycle(i: int) -> object:
    one: list[object] = [i]
    one.append(one)
    return one


def an_exception(i: int) -> object:
    try:
        raise KeyError(i)
    except KeyError as error:
        return error


class Plain:
    """One with a ``__dict__``, which `tracemalloc` of 3.11 does not find."""


def an_instance(i: int) -> object:
    return Plain()


class Knot:
    """One that holds itself, in a block that was no other object's before.

    A list can be in one that any thread freed and that was had before there was tracing.
    """

    __slots__ = ("itself",)

    def __init__(self) -> None:
        self.itself = self


def a_knot() -> object:
    return Knot()


PLANTED = {
    an_instance: 300,
    an_exception: 60,
    a_closure: 30,
    a_cycle: 24,
    a_dictionary: 12,
    a_tuple: 6,
}
"""How many of each a step makes; so far apart that objects of several types change no order."""


def make(steps: int) -> list[object]:
    kept: list[object] = []
    for _ in range(steps):
        for plant, count in PLANTED.items():
            for i in range(count):
                kept.append(plant(i))
        if len(kept) > 1200:
            del kept[:600]
    return kept


def shares(found: CollectionSites) -> dict[Callable[..., Any], float]:
    return {
        plant: sum(
            each.share
            for each in found.sites
            if Path(each.file).name == THIS and each.line in lines_of(plant)
        )
        for plant in PLANTED
    }


def test_planted_objects_are_named_in_their_order_and_hold_nearly_all():
    found = looked_at(lambda: make(100))
    by_plant = shares(found)
    assert list(by_plant.values()) == sorted(by_plant.values(), reverse=True)
    assert min(by_plant.values()) > 0
    assert sum(by_plant.values()) > 0.9


def test_shares_are_parts_of_all_that_was_young_and_collections_are_the_interpreters():
    counts: list[list[int]] = []

    def work() -> None:
        counts.append([each["collections"] for each in gc.get_stats()])
        gc.enable()
        make(80)
        gc.disable()
        counts.append([each["collections"] for each in gc.get_stats()])

    gc.disable()
    found = looked_at(work)
    gc.enable()
    assert list(found.collections) == [b - a for a, b in zip(*counts, strict=True)]
    assert sum(each.share for each in found.sites) == pytest.approx(1)
    assert sum(each.pause_share for each in found.sites) == pytest.approx(1)


def site(found: CollectionSites, plant: Callable[..., Any], kind: str) -> AllocationSite:
    return next(
        each
        for each in found.sites
        if Path(each.file).name == THIS and each.line in lines_of(plant) and each.type == kind
    )


def test_what_stays_is_retained_and_reaches_the_oldest_generation():
    kept: list[object] = []
    last: deque[object] = deque(maxlen=50)

    def work() -> None:
        for i in range(10_000):
            kept.append(a_knot())
            last.append(a_closure(i))

    found = looked_at(work)
    staying, passing = site(found, a_knot, f"{__name__}.Knot"), site(found, a_closure, "function")
    assert staying.retained == 10_000
    assert passing.retained == 50
    assert 5_000 < staying.promoted <= 10_000
    assert passing.promoted == 50 * found.collections[1] > 0


def test_of_a_call_path_the_callers_are_kept():
    found = looked_at(lambda: make(80))
    path = site(found, a_cycle, "list").path
    assert [Path(file).name for file, _ in path][-2:] == [THIS, THIS]
    assert path[-1][1] in lines_of(a_cycle)
    assert path[-2][1] in lines_of(make)


def test_what_was_there_before_has_no_place():
    gc.disable()
    tracemalloc.stop()
    kept = [[i] for i in range(600)]
    tracemalloc.start()
    log = SiteLog()
    log.start()
    gc.enable()
    more = [[i] for i in range(400)]
    found = log.stop()
    unknown = next(each for each in found.sites if not each.file)
    assert (unknown.type, unknown.line, unknown.retained) == ("list", 0, 0)
    assert unknown.share > 0.5
    assert len(kept) + len(more) == 1000
