"""Costs stand at the code that a change has touched: all of them, each once, whatever is moved."""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from typing import NamedTuple

import pytest
from counted_versions import ENGINE, FILE, NUM_REQUESTS, counted
from hypothesis import given
from hypothesis import strategies as st

from gcbench.function_costs import Call, FunctionCost
from harness.explain.attribution import attributed_costs, touched_functions
from harness.explain.changes import function_changes
from harness.explain.largest_changes import largest_changes
from harness.explain.line_changes import line_changes
from harness.explain.result import Costs
from harness.trial.step_costs import StepCosts


class Node(NamedTuple):
    """A call in a made-up tree: below ``parent``, an earlier one, or -1."""

    parent: int
    function: int
    bytecodes: int
    allocations: int


NUM_FUNCTIONS = 6
NAMES = [(f"file_{n % 2}.py", f"function_{n}") for n in range(NUM_FUNCTIONS)]


@st.composite
def trees(draw: st.DrawFn) -> list[Node]:
    """Up to 20 calls, recursive ones among them."""
    counts = st.integers(0, 50)
    return [
        Node(
            draw(st.integers(-1, place - 1)),
            draw(st.integers(0, NUM_FUNCTIONS - 1)),
            draw(counts),
            draw(counts),
        )
        for place in range(draw(st.integers(1, 20)))
    ]


TOUCHED = st.sets(st.integers(0, NUM_FUNCTIONS - 1))


def costs_of(tree: Sequence[Node], names: Sequence[tuple[str, str]] = NAMES) -> StepCosts:
    functions = []
    for number, (file, name) in enumerate(names):
        mine = [node for node in tree if node.function == number]
        bytecodes, allocations = (
            sum(node.bytecodes for node in mine),
            sum(node.allocations for node in mine),
        )
        functions.append(
            FunctionCost(
                stage="rest",
                file=file,
                name=name,
                line=1 + number,
                calls=len(mine),
                bytecodes=bytecodes,
                allocations=allocations,
                net=allocations,
                all_bytecodes=bytecodes,
                all_allocations=allocations,
                lines=[],
                code="",
            )
        )
    calls = [
        Call(node.parent, node.function, 1, node.bytecodes, node.allocations, node.allocations)
        for node in tree
    ]
    return StepCosts(num_steps=1, num_rows=1, functions=functions, calls=calls)


def named(touched: Collection[int]) -> frozenset[tuple[str, str]]:
    return frozenset(NAMES[number] for number in touched)


def stands_at(tree: Sequence[Node], place: int, touched: Collection[int]) -> int:
    """By hand: climb until a function is touched; where none is, it is the call's own."""
    at = place
    while at >= 0:
        if tree[at].function in touched:
            return tree[at].function
        at = tree[at].parent
    return tree[place].function


@given(trees(), TOUCHED)
def test_each_cost_stands_once_at_the_nearest_touched_caller(tree, touched):
    """A bit for each call, so that a sum says which calls are in it."""
    tree = [node._replace(bytecodes=1 << place) for place, node in enumerate(tree)]
    expected: Counter[int] = Counter()
    for place, node in enumerate(tree):
        expected[stands_at(tree, place, touched)] += node.bytecodes
    found = attributed_costs(costs_of(tree), named(touched))
    assert {at.line - 1: each.costs.bytecodes for at, each in found.items()} == {
        number: expected[number] for number in range(NUM_FUNCTIONS)
    }
    assert sum(each.costs.bytecodes for each in found.values()) == (1 << len(tree)) - 1
    for at, each in found.items():
        below = sum(costs.bytecodes for costs in each.beneath.values())
        own = sum(node.bytecodes for node in tree if node.function == at.line - 1)
        assert not each.beneath or at.line - 1 in touched
        assert at.line - 1 not in touched or each.costs.bytecodes == own + below


@given(trees(), trees(), TOUCHED)
def test_changes_add_up_to_the_total_to_the_digit(before, after, touched):
    old, new = costs_of(before), costs_of(after)
    changes = function_changes(old, new, named(touched))
    for column in ("bytecodes", "allocations"):
        for side, of in ((before, "costs_before"), (after, "costs_after")):
            total = sum(getattr(node, column) for node in side)
            assert sum(getattr(getattr(each, of), column) for each in changes) == total


@given(trees(), trees(), TOUCHED, st.permutations(range(NUM_FUNCTIONS)), st.booleans())
def test_renaming_or_moving_what_is_unchanged_changes_nothing_above_it(
    before, after, touched, order, is_moved
):
    def top(names: Sequence[tuple[str, str]]) -> dict[str, tuple[Costs, Costs]]:
        changes = function_changes(costs_of(before), costs_of(after, names), named(touched))
        return {
            each.after[0].name: (each.costs_before, each.costs_after)
            for each in changes
            if each.is_touched
        }

    others = [
        (f"moved_{order[n]}.py" if is_moved else file, name if is_moved else f"renamed_{order[n]}")
        for n, (file, name) in enumerate(NAMES)
    ]
    renamed = [NAMES[n] if n in touched else other for n, other in enumerate(others)]
    assert top(renamed) == top(NAMES)


CALL = ("            found += self", "            self.checked(found)\n            found += self")
APPEND = "            request.tokens.append(token)\n"
DUMPS = (APPEND, f"{APPEND}            json.dumps({{'token': token}}, indent=1)\n")
IMPORT = ("\nclass Request:", "import json\n\nclass Request:")
TWICE = ("        self.update(rows)\n", "        self.update(rows)\n        self.update(rows)\n")
ONCE_MORE = ("                rows.append(request)\n", 2 * "                rows.append(request)\n")


@pytest.fixture(scope="module")
def versions(frozen_heap, tmp_path_factory):
    """Count the engine, and one in which a line is planted, each once."""

    @cache
    def side(source: str):
        return counted(tmp_path_factory.mktemp("attributed") / "version", source)

    def count(planted: tuple[str, str]):
        old, new = ENGINE.replace(*IMPORT), ENGINE.replace(*IMPORT).replace(*planted, 1)
        assert old != new
        return side(old), side(new)

    return count


@pytest.mark.parametrize(
    ("planted", "function", "text", "beneath"),
    [
        (CALL, "Engine.outputs", "self.checked(found)", {"Engine.checked"}),
        (TWICE, "Engine.step", "self.update(rows)", {"Engine.update", "Engine.sample"}),
        (DUMPS, "Engine.update", "json.dumps({'token': token}, indent=1)", {"dumps"}),
    ],
    ids=["a function of the engine", "called once more", "json.dumps"],
)
def test_a_call_costs_at_its_line_what_all_that_it_runs_costs(
    versions, planted, function, text, beneath
):
    before, after = versions(planted)
    total = after.metrics["bytecodes"] - before.metrics["bytecodes"]
    (first,) = largest_changes(before, after)
    assert (first.function, first.file, first.text) == (function, FILE, text)
    assert first.bytecodes * after.costs.num_rows == pytest.approx(total)
    assert beneath <= {each.function for each in first.beneath}
    changes = function_changes(before.costs, after.costs, touched_functions(before, after))
    lines = line_changes(changes, before, after)
    assert sum(each.bytecodes for each in lines) * after.costs.num_rows == pytest.approx(total)
    assert max(lines, key=lambda each: each.bytecodes).text == text
    assert {each.function for each in lines} == {function}
    (taken_back,) = largest_changes(after, before)
    assert (taken_back.function, taken_back.bytecodes) == (function, -first.bytecodes)
    assert taken_back.text == text


def test_what_a_change_s_data_cost_elsewhere_stays_where_it_ran(versions):
    """Rows twice: `schedule` is touched, and who takes them is not below it."""
    before, after = versions(ONCE_MORE)
    assert touched_functions(before, after) == {(FILE, "Engine.schedule")}
    found = {each.function: each for each in largest_changes(before, after)}
    assert {"Engine.schedule", "Engine.update", "Engine.outputs"} <= found.keys()
    assert all(not each.beneath for each in found.values())
    per_request = found["Engine.schedule"].bytecodes
    assert 0 < per_request * NUM_REQUESTS < found["Engine.update"].bytecodes * NUM_REQUESTS


def test_nothing_is_touched_where_no_code_is_known(versions):
    before, after = versions(CALL)
    assert touched_functions(before, before) == frozenset()
    for roots in ([], [""]):
        unknown = type(after)(label="", roots=roots, costs=after.costs, metrics={})
        assert touched_functions(before, unknown) == frozenset()


TWO = """        found = sum(len(request.tokens) for request in rows)
        found -= max(len(request.tokens) for request in rows)
        for request in rows:
"""


@pytest.mark.parametrize("dearer", [0, 1])
def test_of_two_comprehensions_of_one_name_the_dearer_is_named(tmp_path, frozen_heap, dearer):
    lines = TWO.splitlines(keepends=True)
    old = ENGINE.replace("        found = 0\n        for request in rows:\n", TWO)
    assert old != ENGINE
    changed = lines[dearer].replace("len(request.tokens)", "len(request.tokens) + 1 - 1 * len('')")
    before = counted(tmp_path / "before", old)
    after = counted(
        tmp_path / "after", old.replace(lines[dearer], "        rows = rows\n" + changed)
    )
    (first,) = largest_changes(before, after)
    assert first.text == changed.strip()
    (back,) = largest_changes(after, before)
    assert back.text == lines[dearer].strip()
