"""Edit distances of messages, against a table filled in by hand; and which pairs are looked at."""

import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.trial.edit_distance import ALL_UP_TO, EVERY, LONGEST, edit_distances

messages = st.lists(st.text("ab", max_size=9).map(str.encode), max_size=6)


def by_hand(a: bytes, b: bytes) -> int:
    """Wagner and Fischer's, a row at a time."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        before, row = row, [i]
        for j, right in enumerate(b, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (left != right)))
    return row[-1]


@given(messages)
def test_each_message_is_compared_with_the_next(messages):
    expected = [by_hand(a, b) for a, b in pairwise(messages)]
    found = edit_distances(list(map(len, messages)), messages.__getitem__)
    assert ([] if found.first is None else [found.first]) + found.others == expected
    assert (found.every, found.num_too_long) == (1, 0)


@given(st.binary(max_size=400), st.binary(max_size=400))
def test_what_has_little_in_common(a, b):
    found = edit_distances([len(a), len(b)], [a, b].__getitem__)
    assert found.first == by_hand(a, b)


def test_of_long_messages_one_pair_in_seven():
    """The distance of a pair is its number, so that it says which were compared."""
    size = ALL_UP_TO + 1
    ends = [bytes([0]) * sum(range(n)) for n in range(30)]
    lengths = [size - 1 + len(end) for end in ends]
    found = edit_distances(lengths, lambda n: bytes([1]) * (size - 1) + ends[n])
    assert found.every == EVERY
    assert (found.first, found.others) == (0, [7, 14, 21, 28])


def test_what_is_too_long_is_left_out_and_counted():
    sizes = [4, LONGEST + 1] + [4] * EVERY
    found = edit_distances(sizes, lambda n: bytes(4))
    assert (found.first, found.others) == (None, [0])
    assert found.num_too_long == 1


def test_one_message_has_no_next():
    assert edit_distances([7], lambda n: bytes(7)) == (None, [], 1, 0)


def test_an_interpreter_without_rapidfuzz_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance.Levenshtein", None)
    with pytest.raises(ValueError, match=r"rapidfuzz.*-m pip install rapidfuzz$"):
        edit_distances([1, 1], lambda n: b"a")
