"""Ballast: objects of the types, fan-out, sizes and distances of the census."""

import gc
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.collector.ballast import build_ballast
from harness.collector.ballast_plan import plan_ballast
from harness.collector.census import SERVED_VLLM, Census, load_census

pytestmark = pytest.mark.usefixtures("frozen_heap")

COUNTED = 200_000


def built(count: int, census: Census, seed: int) -> list[object]:
    """As `heap.top_up` has it built: with the collector off, then a full pass."""
    gc.disable()
    try:
        objects = build_ballast(count, census, seed)
    finally:
        gc.enable()
    gc.collect()
    return objects


@pytest.fixture(scope="module")
def census() -> Census:
    return load_census(SERVED_VLLM)


@pytest.fixture(scope="module")
def objects(census: Census) -> list[object]:
    return built(COUNTED, census, seed=1)


def listed(objects: list[object]) -> list[object]:
    """In the order of the collector's list."""
    inside = {id(made) for made in objects}
    return [made for made in gc.get_objects() if id(made) in inside]


def kind_of(made: object) -> str:
    return type(made).__name__ if type(made).__module__ == "builtins" else "struct"


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 192, 193, 1000])
def test_any_number_can_be_built(census: Census, count: int) -> None:
    objects = built(count, census, seed=count)
    assert len({id(made) for made in objects}) == count
    assert all(map(gc.is_tracked, objects))


def test_every_object_is_tracked_once(objects: list[object]) -> None:
    assert len({id(made) for made in objects}) == len(objects) == COUNTED
    assert all(map(gc.is_tracked, objects))
    assert len(listed(objects)) == COUNTED


@given(count=st.integers(0, 3000), seed=st.integers(0, 2**32 - 1))
def test_fields_are_older_objects_and_atoms_made_by_then(
    census: Census, count: int, seed: int
) -> None:
    plan = plan_ballast(census, count, seed)
    of = np.repeat(np.arange(count), plan.references + plan.atoms)
    is_atom = plan.fields >= count
    assert (plan.fields < np.where(is_atom, count + plan.atoms_made[of], of)).all()
    assert np.bincount(of[is_atom], minlength=count).tolist() == plan.atoms.tolist()
    assert sorted(plan.order) == list(range(count))


def test_shares_are_those_of_the_census(objects: list[object], census: Census) -> None:
    counts = Counter(map(kind_of, objects))
    share = {kind.type: kind.share for kind in census.kinds}
    for name in ("function", "tuple", "dict", "list", "set", "frozenset"):
        assert counts[name] / len(objects) == pytest.approx(share[name], abs=0.005)
    # All other types are cells, properties and structs.
    native = sum(share[name] for name in ("function", "tuple", "dict", "list", "set", "frozenset"))
    stand_ins = counts["cell"] + counts["property"] + counts["struct"]
    assert stand_ins / len(objects) == pytest.approx(1 - native, abs=0.01)


def fan_out(objects: list[object]) -> tuple[float, float]:
    """Mean references to tracked objects and to others."""
    referents = [r for made in objects for r in gc.get_referents(made)]
    references = sum(map(gc.is_tracked, referents))
    return references / len(objects), (len(referents) - references) / len(objects)


def test_fan_out_is_that_of_the_census(objects: list[object], census: Census) -> None:
    references, atoms = fan_out(objects)
    both = sum(k.share * (k.references + k.atoms) for k in census.kinds)
    assert references + atoms == pytest.approx(both, rel=0.05)
    if sys.version_info >= (3, 14):  # all dictionaries are tracked, and no tuple of atoms is
        return
    assert references == pytest.approx(sum(k.share * k.references for k in census.kinds), rel=0.05)
    assert atoms == pytest.approx(sum(k.share * k.atoms for k in census.kinds), rel=0.07)
    kinds = {kind.type: kind for kind in census.kinds}
    for name in ("function", "tuple", "dict", "list"):
        references, atoms = fan_out([made for made in objects if kind_of(made) == name])
        assert references == pytest.approx(kinds[name].references, rel=0.1)
        assert atoms == pytest.approx(kinds[name].atoms, rel=0.1)


def test_sizes_are_those_of_the_census(objects: list[object], census: Census) -> None:
    kinds = {kind.type: kind for kind in census.kinds}
    for name in ("function", "tuple", "dict", "list"):
        sizes = [sys.getsizeof(made) for made in objects if kind_of(made) == name]
        assert sum(sizes) / len(sizes) == pytest.approx(kinds[name].size_bytes, rel=0.15)


def test_references_reach_as_far_in_the_list_as_in_the_census(
    objects: list[object], census: Census
) -> None:
    in_order = listed(objects)
    place = {id(made): number for number, made in enumerate(in_order)}
    jumps = [
        (abs(place[id(r)] - number), id(r))
        for number, made in enumerate(in_order)
        for r in gc.get_referents(made)
        if id(r) in place
    ]
    uses = Counter(target for _, target in jumps)
    popular = {target for target, _ in uses.most_common(census.popular[-1].bound)}
    far = [jump for jump, target in jumps if target not in popular]
    for within in census.distances[:7]:  # those that are small beside this ballast
        share = sum(jump <= within.bound for jump in far) / len(far)
        assert share == pytest.approx(within.share, abs=0.05)


NEIGHBOURS = """
import gc, itertools, json, sys
from harness.collector.ballast import build_ballast
from harness.collector.census import SERVED_VLLM, load_census

gc.disable()
census = load_census(SERVED_VLLM)
objects = build_ballast(int(sys.argv[1]), census, 1)
gc.enable()
gc.collect()
inside = {id(made) for made in objects}
places = [id(made) for made in gc.get_objects() if id(made) in inside]
steps = [abs(a - b) for a, b in itertools.pairwise(places)]
print(json.dumps([sum(step <= within.bound for step in steps) / len(steps)
                  for within in census.neighbours]))
"""
"""In an interpreter of its own: one that has run hundreds of tests has holes in its memory."""


def test_neighbours_in_the_list_are_as_far_in_memory_as_in_the_census(
    census: Census, fresh_interpreter: Callable[..., Any]
) -> None:
    shares = fresh_interpreter(NEIGHBOURS, str(COUNTED))
    for within, share in list(zip(census.neighbours, shares, strict=True))[:-1]:
        assert share == pytest.approx(within.share, abs=0.2)  # the last: nearly all of this ballast


def shape(census: Census, seed: int) -> list[tuple[str, int]]:
    objects = built(5000, census, seed)
    return [(kind_of(made), len(gc.get_referents(made))) for made in objects]


def test_the_seed_decides_the_shape(census: Census) -> None:
    assert shape(census, 1) == shape(census, 1)
    assert shape(census, 1) != shape(census, 2)
