"""The census: what it says of heaps whose make is known, and of files that are none."""

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.collector.census import SERVED_VLLM, Census, load_census

KNOWN_HEAP = """
import gc, json, sys
import msgspec
from harness.collector.take_census import take_census

class Pair:
    __slots__ = ("one", "other")

gc.disable()
for _ in range(4):  # each full pass untracks one more level of nested tuples
    gc.collect()
before = len(gc.get_objects())
target = ["target"]
lists = [[target] for _ in range(40_000)]
pairs = []
for number in range(20_000):
    pair = Pair()
    pair.one, pair.other = lists[number], f"atom {number}"
    pairs.append(pair)
if "frozen" in sys.argv:
    gc.freeze()
stats = gc.get_stats()[2]["collections"]
census = take_census("known", vllm="none")
print(json.dumps({
    "before": before, "after": len(gc.get_objects()), "census": msgspec.to_builtins(census),
    "enabled": gc.isenabled(), "passes": gc.get_stats()[2]["collections"] - stats,
    "frozen": gc.get_freeze_count(),
}))
"""


@pytest.fixture(scope="module")
def shipped() -> Census:
    return load_census(SERVED_VLLM)


@pytest.mark.parametrize("frozen", ["frozen", "not frozen"])
def test_a_known_heap_has_its_shares_fan_outs_and_atoms(
    fresh_interpreter: Callable[..., Any], frozen: str
) -> None:
    seen = fresh_interpreter(KNOWN_HEAP, frozen)
    census = msgspec.convert(seen["census"], Census)
    assert abs(census.objects - (seen["before"] + 60_003)) <= 20
    kinds = {kind.type: kind for kind in census.kinds}
    pairs, lists = kinds["__main__.Pair"], kinds["list"]
    assert pairs.share * census.objects == pytest.approx(20_000, abs=20)
    assert lists.share * census.objects == pytest.approx(40_000, rel=0.05)
    # A class made in Python is one of its instances' references.
    assert (pairs.references, pairs.atoms, pairs.size_bytes) == (2, 1, 48)
    assert [fan_out.references for fan_out in pairs.fan_out] == [2]
    assert lists.fan_out[1].references == 1
    assert lists.fan_out[1].share * census.objects == pytest.approx(40_000, rel=0.05)
    assert census.atoms.distinct > 20_000
    assert not seen["enabled"]
    assert seen["frozen"] < 1000


def test_references_to_few_objects_are_popular_and_the_rest_has_a_distance(
    fresh_interpreter: Callable[..., Any],
) -> None:
    census = msgspec.convert(fresh_interpreter(KNOWN_HEAP)["census"], Census)
    references = sum(kind.share * kind.references for kind in census.kinds) * census.objects
    to_target_and_class = 60_000 / references
    assert census.popular[0].share >= to_target_and_class
    assert census.same_kind > 0.5
    for shares in (census.popular, census.distances, census.neighbours, census.atoms.popular):
        cumulative = [within.share for within in shares]
        assert cumulative == sorted(cumulative)


def test_a_heap_that_is_counted_twice_is_the_same(fresh_interpreter: Callable[..., Any]) -> None:
    twice = fresh_interpreter(
        """
import gc, json
import msgspec
from harness.collector.take_census import take_census
counted = [msgspec.to_builtins(take_census("twice")) for _ in range(3)]
del counted[0]  # what the first call loads stays
for census in counted:
    del census["full_pass_ns_per_object"]
print(json.dumps(counted))
"""
    )
    first, second = (msgspec.convert(c | {"full_pass_ns_per_object": 0}, Census) for c in twice)
    # Between the two lies the first one's record, in builtins.
    record = json.dumps(twice[0]).count("{") + json.dumps(twice[0]).count("[")
    assert 0 <= second.objects - first.objects <= record + 5


def test_the_shipped_census_is_of_a_served_vllm(shipped: Census) -> None:
    assert shipped.vllm == "0.32.0"
    assert shipped.objects > 500_000
    assert shipped.full_pass_ns_per_object > 0
    assert {"tuple", "function", "dict", "cell", "list", "other"} <= {
        kind.type for kind in shipped.kinds
    }


def test_means_of_a_kind_are_those_of_its_fan_outs(shipped: Census) -> None:
    for kind in shipped.kinds:
        for field in ("references", "atoms", "size_bytes"):
            parts = sum(part.share * getattr(part, field) for part in kind.fan_out)
            assert parts / kind.share == pytest.approx(getattr(kind, field), rel=0.02, abs=0.01)


def altered(shipped: Census, **fields: Any) -> str:
    return json.dumps(msgspec.to_builtins(shipped) | fields)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"schema": "gcbench.census/2"}, "schema is 'gcbench.census/2', not 'gcbench.census/1'"),
        ({"objects": 0}, r"\$.objects"),
        ({"same_kind": 1.5}, r"\$.same_kind"),
        ({"surprise": 1}, "unknown field `surprise`"),
        ({"kinds": []}, r"\$.kinds"),
    ],
)
def test_a_wrong_field_is_named(
    tmp_path: Path, shipped: Census, fields: dict[str, Any], reason: str
) -> None:
    path = tmp_path / "mine.json"
    path.write_text(altered(shipped, **fields))
    with pytest.raises(ValueError, match=reason) as refused:
        load_census(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_shares_that_are_no_whole_are_refused(tmp_path: Path, shipped: Census) -> None:
    path = tmp_path / "half.json"
    kinds = msgspec.to_builtins(shipped.kinds)[1:]
    path.write_text(altered(shipped, kinds=kinds))
    with pytest.raises(ValueError, match=r"shares add up to 0\.\d+, not 1"):
        load_census(path)


@pytest.mark.parametrize("broken", ["", "{", "[]", "\x00", '{"schema": 1}'])
def test_a_file_that_is_no_census_is_refused_in_a_sentence(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "broken.json"
    path.write_text(broken)
    with pytest.raises(ValueError, match="not a census") as refused:
        load_census(path)
    assert str(path) in str(refused.value)


def test_a_census_cut_short_is_refused(tmp_path: Path, shipped: Census) -> None:
    path = tmp_path / "cut.json"
    path.write_text(altered(shipped)[:-100])
    with pytest.raises(ValueError, match="not a census"):
        load_census(path)


def test_one_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.json: the census cannot be read: No such file"):
        load_census(tmp_path / "none.json")


def test_taking_it_leaves_the_collector_on(fresh_interpreter: Callable[..., Any]) -> None:
    script = "import gc; from harness.collector.take_census import take_census; take_census('on'); "
    assert fresh_interpreter(script + "print('true' if gc.isenabled() else 'false')") is True
    assert gc.isenabled()
