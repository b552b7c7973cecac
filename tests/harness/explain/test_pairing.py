"""Functions of two versions find each other, renamed, moved, split and joined."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_functions import BOTH, JOIN, SUM, function

from harness.explain.pairing import Paired, pair_functions


def test_one_of_the_same_name_in_the_same_file_is_the_same_whatever_it_does():
    old, new = [function(SUM, "f"), function(JOIN, "g")], [function(JOIN, "g"), function(JOIN, "f")]
    assert sorted(pair_functions(old, new)) == [
        Paired((0,), (1,), "paired"),
        Paired((1,), (0,), "paired"),
    ]


@pytest.mark.parametrize(
    ("name", "file", "kind"),
    [
        ("Scheduler.total", "engine/other.py", "moved"),
        ("Counter.total", "engine/core.py", "moved"),
        ("Scheduler.sum_up", "engine/core.py", "renamed"),
        ("sum_up", "engine/other.py", "renamed"),
    ],
)
def test_one_that_was_moved_or_renamed_is_found(name, file, kind):
    old = [function(JOIN, "joined"), function(SUM, "Scheduler.total")]
    new = [function(SUM, name, file), function(JOIN, "joined")]
    assert Paired((1,), (0,), kind) in pair_functions(old, new)


def test_a_part_that_was_taken_out_of_a_function_is_found_and_so_is_one_put_into_it():
    whole, rest, part = function(BOTH, "f"), function(SUM, "f"), function(JOIN, "helper")
    assert pair_functions([whole], [rest, part]) == [Paired((0,), (0, 1), "split")]
    assert pair_functions([rest, part], [whole]) == [Paired((0, 1), (0,), "joined")]


def test_what_is_like_nothing_is_new_or_gone():
    found = pair_functions([function(SUM, "f")], [function(JOIN, "g")])
    assert found == [Paired((0,), (), "gone"), Paired((), (0,), "new")]


def test_functions_of_one_name_are_told_apart_by_what_they_do():
    old = [function(SUM, "<lambda>", line=3), function(JOIN, "<lambda>", line=9)]
    new = [function(JOIN, "<lambda>", line=5), function(SUM, "<lambda>", line=8)]
    assert sorted(pair_functions(old, new)) == [
        Paired((0,), (1,), "paired"),
        Paired((1,), (0,), "paired"),
    ]


SOURCES = st.sampled_from([SUM, JOIN, BOTH])
FUNCTIONS = st.lists(
    st.builds(
        function,
        SOURCES,
        st.sampled_from(["f", "g", "A.f", "B.f", "A.g"]),
        st.sampled_from(["a.py", "b.py"]),
        st.integers(1, 99),
    ),
    max_size=8,
)


@given(before=FUNCTIONS, after=FUNCTIONS)
def test_each_function_is_in_one_place(before, after):
    found = pair_functions(before, after)
    assert sorted(i for each in found for i in each.before) == list(range(len(before)))
    assert sorted(i for each in found for i in each.after) == list(range(len(after)))
    for each in found:
        assert (each.kind == "gone") == (not each.after)
        assert (each.kind == "new") == (not each.before)


@given(functions=FUNCTIONS)
def test_a_version_is_paired_with_itself(functions):
    for each in pair_functions(functions, functions):
        assert (len(each.before), len(each.after), each.kind) == (1, 1, "paired")
