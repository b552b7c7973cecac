"""Where the bytes of a pickle go, against what pickles of single values take."""

import pickle
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.pickle_fields import NAMES, PICKLE_REST, pickle_fields


class Point(NamedTuple):
    rows: Any = 1
    counts: Any = 2


@dataclass
class Plain:
    rows: Any = 1
    counts: Any = 2


@dataclass(slots=True)
class Slotted:
    rows: Any = 1
    counts: Any = 2


@dataclass(frozen=True, slots=True)
class Frozen:
    rows: Any = 1
    counts: Any = 2


class Struct(msgspec.Struct):
    rows: Any = 1
    counts: Any = 2


class KeywordOnly(msgspec.Struct, kw_only=True, omit_defaults=True):
    rows: Any = 1
    counts: Any = 2


def by_keyword(rows: Any = 1, counts: Any = 2) -> KeywordOnly:
    return KeywordOnly(rows=rows, counts=counts)


class Array(msgspec.Struct, array_like=True):
    rows: Any = 1
    counts: Any = 2


class Stage(IntEnum):
    DECODE = 2


@dataclass
class Nested:
    inner: Any
    others: list[Any] = field(default_factory=list)


RECORDS = (Point, Plain, Slotted, Frozen, Struct, by_keyword, Array)
every_record = pytest.mark.parametrize("record", RECORDS)
every_protocol = pytest.mark.parametrize("protocol", [2, 3, 4, 5])

simple = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=300)
    | st.binary()
    | st.sampled_from([Stage.DECODE, Plain, OrderedDict(a=1), {3, 4}, frozenset((1, 2)), 1j])
    | st.integers(0, 40).map(lambda n: np.arange(n, dtype=np.int32))
    | st.builds(bytearray, st.binary())
)
values = st.recursive(
    simple,
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=5)
        | st.sampled_from(RECORDS).flatmap(lambda cls: st.builds(cls, inner, inner))
        | inner.map(lambda value: [value, value])
    ),
    max_leaves=20,
)


@every_protocol
@given(value=values)
def test_the_parts_are_the_whole(protocol, value):
    data = pickle.dumps(value, protocol)
    found = pickle_fields(data)
    assert sum(found.values()) == len(data)
    assert min(found.values()) >= 0


@given(value=values)
def test_buffers_that_travel_beside_it_count_too(value):
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(value, 5, buffer_callback=buffers.append)
    sizes = [each.raw().nbytes for each in buffers]
    assert sum(pickle_fields(data, sizes).values()) == len(data) + sum(sizes)


def test_a_tuple_that_holds_itself():
    inner: list[Any] = []
    whole = (inner, 7)
    inner.append(whole)
    data = pickle.dumps(whole, 5)
    assert sum(pickle_fields(data).values()) == len(data)


@every_record
@every_protocol
def test_a_field_has_what_its_value_takes(record, protocol):
    rows, counts = list(range(1000, 1017)), 3.5
    found = pickle_fields(pickle.dumps(record(rows, counts), protocol))
    # Of a list each item's three bytes; begun, marked, appended to.
    assert found["rows"] == 17 * 3 + 3
    assert found["counts"] == 9
    assert found.keys() == {"rows", "counts", NAMES, PICKLE_REST}


@every_record
def test_names_are_those_of_classes_and_attributes(record):
    once, twice = (
        pickle_fields(pickle.dumps([record(8, 9) for _ in range(count)], 5)) for count in (1, 2)
    )
    cls, rebuilt, by_name = type(record()), record is by_keyword, record in (Plain, Slotted)
    strings = [cls.__module__, cls.__name__]
    strings += ["msgspec._utils", "rebuild"] * rebuilt
    strings += ["rows", "counts"] * (by_name or rebuilt)
    assert once[NAMES] == sum(2 + len(each) for each in strings) + 1 + rebuilt
    again = 2 * (1 + rebuilt + 2 * (by_name or rebuilt))  # two bytes for each name known already
    assert twice[NAMES] - once[NAMES] == again


def test_paths_go_through_objects_and_not_through_containers():
    message = Nested({"a": [Plain(np.arange(100), "x")]}, [Frozen({1: Point(5, 6)})])
    found = pickle_fields(pickle.dumps(message, 5))
    assert found["inner.rows"] > 800
    assert found["inner.counts"] == 3
    assert found["others.rows.rows"] == found["others.rows.counts"] == 2
    assert "inner.a" not in found


def test_keys_of_a_dictionary_are_values():
    """Only an object's state names fields."""
    found = pickle_fields(pickle.dumps(Plain({"request-1": 1, "request-2": 2}), 5))
    assert found["rows"] == 1 + 2 + 2 * (2 + len("request-1")) + 2 * 2


def test_a_string_that_stands_twice_is_two_bytes_the_second_time():
    text = "request-7"
    found = pickle_fields(pickle.dumps(Plain([text], [text]), 5))
    assert found["rows"] == 1 + 1 + 2 + len(text)
    assert found["counts"] == 1 + 1 + 2


def test_of_a_class_that_is_not_known_only_the_names_are_told():
    data = pickle.dumps(Nested(Point([1, 2, 3])), 5).replace(b"Point", b"Other")
    found = pickle_fields(data)
    assert found["inner"] >= 9
    assert "inner.rows" not in found
    assert sum(found.values()) == len(data)


def test_what_no_pickler_of_today_writes_is_refused():
    with pytest.raises(ValueError, match="protocols 2 to 5"):
        pickle_fields(pickle.dumps([1, 2], 0))
