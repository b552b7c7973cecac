"""What was planted in a small engine is named first, with its sign and its size."""

from functools import cache

import pytest
from counted_versions import ENGINE, FILE, NUM_REQUESTS, NUM_STEPS, counted
from msgspec.structs import replace

from harness.explain.changes import function_changes
from harness.explain.largest_changes import largest_changes
from harness.explain.line_changes import line_changes
from harness.explain.ranking import by_change, by_line_change
from harness.explain.result import By
from harness.trial.step_costs import RequestFunctionCost

LOOP = (
    "        return rows\n\n    def update",
    """        for _ in range(20):
            pass
        return rows

    def update""",
)
_TOKEN = "            token = self"
DICTIONARY = (_TOKEN, f"            kept.append({{1: request}})\n{_TOKEN}")
PROPERTY = (
    "        return len(self.tokens) > 100\n",
    """        return self.count() > 100

    def count(self):
        return len(self.tokens)
""",
)
COPY = ("        return value & 255\n", "        return [value, value][0] & 255\n")
C_CALL = ("            found += self", "            abs(found)\n            found += self")
GROWS = (_TOKEN, f"            kept.append([request])\n{_TOKEN}")


@pytest.fixture(scope="module")
def versions(frozen_heap, tmp_path_factory):
    """Count the engine and one with something planted in it, each version once."""

    @cache
    def side(name: str, source: str):
        return counted(tmp_path_factory.mktemp("version") / name, source)

    def count(old: str, new: str):
        assert ENGINE.count(old) == 1
        sides = side("before", ENGINE), side("after", ENGINE.replace(old, new))
        return (*sides, function_changes(sides[0].costs, sides[1].costs))

    return count


@pytest.mark.parametrize(
    ("planted", "by", "function", "per_step"),
    [
        (LOOP, "bytecodes", "Engine.schedule", None),
        (DICTIONARY, "objects", "Engine.update", NUM_REQUESTS),
        (PROPERTY, "bytecodes", "Request.count", None),
        (COPY, "bytecodes", "Engine.checked", None),
        (C_CALL, "bytecodes", "Engine.outputs", None),
        (GROWS, "objects", "Engine.update", NUM_REQUESTS),
    ],
    ids=["loop", "dictionary", "property", "copy", "C call", "list that grows"],
)
def test_what_was_planted_is_named_first(versions, planted, by: By, function, per_step):
    before, after, changes = versions(*planted)
    first = by_change(changes, before, after, by)[0]
    assert [each.name for each in first.after] == [function]
    assert {each.file for each in first.after} == {FILE}
    if by == "bytecodes":
        assert first.costs_after.bytecodes > first.costs_before.bytecodes
    else:
        more = first.costs_after.allocations - first.costs_before.allocations
        assert more == pytest.approx(NUM_STEPS * per_step, abs=NUM_STEPS)


@pytest.mark.parametrize("planted", [LOOP, DICTIONARY, COPY, GROWS])
def test_the_changes_add_up_to_what_the_counters_say(versions, planted):
    before, after, changes = versions(*planted)
    for side, of in ((before, "costs_before"), (after, "costs_after")):
        costs = [getattr(each, of) for each in changes]
        assert sum(each.bytecodes for each in costs) == side.metrics["bytecodes"]
        assert sum(each.allocations for each in costs) == side.metrics["allocations"]


@pytest.mark.parametrize(
    ("planted", "text"),
    [(DICTIONARY, "kept.append({1: request})"), (GROWS, "kept.append([request])")],
    ids=["dictionary", "list that grows"],
)
def test_the_line_that_makes_more_objects_is_the_first(versions, planted, text):
    before, after, changes = versions(*planted)
    first = by_line_change(line_changes(changes, before, after), "objects")[0]
    assert (first.text, first.file) == (text, FILE)
    # Tracing itself may leave one to the free list.
    assert first.allocations == first.net == pytest.approx(1.0, abs=1 / NUM_REQUESTS)
    assert not first.is_gone


def test_what_went_away_is_told_too(versions):
    before, after, changes = versions(
        "            token = self.sample(request)\n            request.tokens.append(token)\n",
        "            request.tokens.append(1)\n",
    )
    gone = {each.before[0].name for each in changes if each.kind == "gone"}
    assert gone == {"Engine.sample"}
    lines = line_changes(changes, before, after)
    assert "token = self.sample(request)" in {each.text for each in lines if each.is_gone}
    assert all(each.bytecodes <= 0 for each in lines if each.is_gone)


def test_nothing_has_changed_where_nothing_was_planted(versions):
    before, after, changes = versions("found = 0\n", "found = 0  # of bytes\n")
    assert by_change(changes, before, after, "bytecodes") == []
    assert line_changes(changes, before, after) == []
    assert {each.kind for each in changes} == {"paired"}


@pytest.mark.parametrize(
    ("planted", "function", "text"),
    [
        (LOOP, "Engine.schedule", "for _ in range(20):"),
        (DICTIONARY, "Engine.update", "kept.append({1: request})"),
        (COPY, "Engine.checked", "return [value, value][0] & 255"),
        (GROWS, "Engine.update", "kept.append([request])"),
    ],
    ids=["loop", "dictionary", "copy", "list that grows"],
)
def test_a_report_names_first_what_was_planted_and_its_line(versions, planted, function, text):
    before, after, _ = versions(*planted)
    assert largest_changes(before, before) == []
    (first, *others) = largest_changes(before, after)
    assert (first.when, first.kind, first.function, first.text) == (
        "step",
        "paired",
        function,
        text,
    )
    source = ENGINE.replace(*planted).splitlines()
    assert source[first.line - 1].strip() == text
    assert first.bytecodes > 0
    assert not others, "nothing else was touched"
    (taken_back,) = largest_changes(after, before)
    assert (taken_back.function, taken_back.bytecodes) == (function, -first.bytecodes)


def test_a_function_that_is_new_or_gone_says_so(versions):
    before, after, _ = versions(*PROPERTY)
    changes = largest_changes(before, after)
    sizes = [abs(each.bytecodes) for each in changes]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) > 1
    found = {each.function: each for each in changes}
    assert (found["Request.count"].kind, found["Request.count"].before) == ("new", "")
    gone = {each.function: each.kind for each in largest_changes(after, before)}
    assert gone["Request.count"] == "gone"


def test_a_request_s_life_is_told_apart_from_its_steps(versions):
    before, after, _ = versions(*LOOP)
    one = RequestFunctionCost("a.py", "add", 3, 40.0, 1.0)
    twin = one._replace(file="b.py")

    def side(costs, *functions):
        return replace(costs, costs=replace(costs.costs, per_request={"add": list(functions)}))

    dearer = one._replace(bytecodes=52.0, allocations=0.5, line=4)
    found = largest_changes(side(before, one, twin), side(after, twin, dearer))
    assert [each.when for each in found] == ["step", "add"]
    told = found[1]
    assert (told.file, told.line, told.bytecodes, told.allocations) == ("a.py", 4, 12.0, -0.5)
    found = largest_changes(side(after, one), side(after, one, twin, dearer._replace(name="late")))
    assert [(each.function, each.file, each.kind) for each in found] == [
        ("late", "a.py", "new"),
        ("add", "b.py", "new"),
    ]
