"""What other programs open says what was counted, whatever things are called."""

import gc
import json
import re
from collections import Counter
from fractions import Fraction
from statistics import mode
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcbench.function_costs import REST, Call, FunctionCost, LineCost, counted_calls
from gcbench.opcodes import OpcodeCounter
from harness.explain.changes import function_changes
from harness.explain.exports.collapsed import collapsed_stacks
from harness.explain.exports.sarif import MOST_RESULTS, sarif_log
from harness.explain.exports.speedscope import speedscope_file
from harness.explain.exports.stacks import COUNTS
from harness.explain.result import FunctionsBody, Side
from harness.trial.step_costs import StepCosts

NAMES = st.text(alphabet="ab;: %\n\t\"'<>\\/é中\u2028\xa0\x00", min_size=1, max_size=6)
COUNT = st.integers(0, 1000)


def function(name, line=1, bytecodes=0, allocations=0, file="pkg/a.py", stage=REST, code=""):
    return FunctionCost(
        stage,
        file,
        name,
        line,
        1,
        bytecodes,
        allocations,
        0,
        bytecodes,
        allocations,
        [LineCost(line, bytecodes, allocations, 0)],
        code,
    )


def costs(*functions, num_steps=2, num_rows=8, calls=()):
    return StepCosts(
        num_steps=num_steps, num_rows=num_rows, functions=list(functions), calls=list(calls)
    )


@st.composite
def counted(draw):
    """A tree of calls, and functions that have what their calls counted."""
    count = draw(st.integers(1, 5))
    calls = []
    for place in range(draw(st.integers(0, 12))):
        parent, which = draw(st.integers(-1, place - 1)), draw(st.integers(0, count - 1))
        calls.append(Call(parent, which, 1, draw(COUNT), draw(COUNT), 0))
    functions = [
        function(
            draw(NAMES),
            draw(st.integers(0, 99)),
            sum(each.bytecodes for each in calls if each.function == place),
            sum(each.allocations for each in calls if each.function == place),
            draw(NAMES),
            draw(st.sampled_from([REST, "schedule"])),
            draw(st.binary(max_size=20)).hex(),
        )
        for place in range(count)
    ]
    steps = draw(st.integers(1, 8))
    rows = steps * draw(st.integers(1, 64))
    return costs(*functions, num_steps=steps, num_rows=rows, calls=calls)


def explained(after, before=None):
    side = Side(label="0.13.1", roots=[], costs=after, metrics={})
    against = before and Side(label="0.13.0", roots=[], costs=before, metrics={})
    changes = function_changes(before, after) if before else []
    return FunctionsBody(by="bytecodes", side=side, against=against, changes=changes)


def by_chain(of, count, named):
    """What each chain of calls counted, found by going up from each call."""
    found = Counter()
    for call in of.calls:
        chain, above = [named(of.functions[call.function])], call.parent
        while above >= 0:
            chain.insert(0, named(of.functions[of.calls[above].function]))
            above = of.calls[above].parent
        found[tuple(chain)] += getattr(call, count)
    return +found


def toy():
    def inner(kept):
        kept.append([])

    def outer():
        kept = []
        for _ in range(3):
            inner(kept)
        return kept

    counters = []
    with OpcodeCounter.instrumented():
        for _ in range(5):
            counters.append(counter := OpcodeCounter())
            gc.collect(0)  # a collection would set the count back that is read
            taken = [[] for _ in range(200)]  # lists of the free list do not count
            with counter:
                outer()
            del taken
    # Another thread, such as pytest-xdist's, may allocate or free meanwhile.
    usual = mode(each.num_allocations for each in counters)
    counter = next(each for each in counters if each.num_allocations == usual)
    tree = counted_calls(counter.tree, {})
    return counter, costs(*tree.functions, num_steps=1, num_rows=3, calls=tree.calls)


@given(counted(), st.sampled_from(COUNTS))
def test_each_chain_of_calls_is_a_collapsed_stack(of, count):
    content = collapsed_stacks(of, count)
    lines = content.decode().removesuffix("\n").split("\n") if content else []
    found = Counter()
    for line in lines:
        stack, total = re.fullmatch(r"(\S+) ([1-9][0-9]*)", line).groups()
        found[tuple(unquote(frame) for frame in stack.split(";"))] += int(total)
    assert found == by_chain(of, count, lambda each: f"{each.file}:{each.name}")
    assert len(lines) == len(found)
    assert found.total() == sum(getattr(each, count) for each in of.functions)
    assert collapsed_stacks(of, count) == content


def test_a_toy_collapses_to_its_calls():
    counter, of = toy()
    lines = collapsed_stacks(of, "allocations").decode().splitlines()
    here = "test_exports.py:toy.<locals>"
    inner = next(line for line in lines if ".inner" in line)
    assert re.fullmatch(rf"\S*{here}\.outer;\S*{here}\.inner 3", inner)
    for count, total in zip(COUNTS, (counter.num_opcodes, counter.num_allocations), strict=True):
        stacks = collapsed_stacks(of, count).decode().splitlines()
        assert sum(int(stack.rpartition(" ")[2]) for stack in stacks) == total


def test_what_would_end_a_frame_or_a_line_is_escaped():
    of = costs(
        function("__init__(self, a;b)\n100 %", file="<string>"), calls=[Call(-1, 0, 1, 7, 0, 0)]
    )
    assert collapsed_stacks(of) == b"<string>:__init__(self,%20a%3Bb)%0A100%20%25 7\n"


def checked_speedscope(content):
    """The file, if it keeps to the schema of sampled profiles."""
    file = json.loads(content)
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert 0 <= file["activeProfileIndex"] < len(file["profiles"])
    frames = file["shared"]["frames"]
    for frame in frames:
        assert frame.keys() == {"name", "file", "line"}
        assert isinstance(frame["name"], str)
        assert isinstance(frame["file"], str)
        assert isinstance(frame["line"], int)
    for profile in file["profiles"]:
        assert profile["type"] == "sampled"
        assert profile["unit"] == "none"
        assert isinstance(profile["name"], str)
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= frame < len(frames) for sample in profile["samples"] for frame in sample)
        assert all(weight > 0 for weight in profile["weights"])
        assert profile["startValue"] == 0
        assert profile["endValue"] == pytest.approx(sum(profile["weights"]))
    return file


@given(counted(), st.none() | counted())
def test_speedscope_has_each_stack_of_each_version_per_step(after, before):
    result = explained(after, before)
    content = speedscope_file("of a test", result)
    file = checked_speedscope(content)
    sides = [result.side, *([result.against] if before else [])]
    expected = [(side, count) for side in sides for count in COUNTS]
    frames = [(each["file"], each["name"], each["line"]) for each in file["shared"]["frames"]]
    assert len(set(frames)) == len(frames)
    for (side, count), profile in zip(expected, file["profiles"], strict=True):
        assert profile["name"] == f"{side.label}: {count} per step"
        steps = side.costs.num_steps
        found = Counter()
        for sample, weight in zip(profile["samples"], profile["weights"], strict=True):
            found[tuple(frames[place] for place in sample)] += round(weight * steps)
        assert found == by_chain(side.costs, count, lambda each: (each.file, each.name, each.line))
        total = sum(getattr(each, count) for each in side.costs.functions)
        assert profile["endValue"] * steps == pytest.approx(total)
    assert speedscope_file("of a test", result) == content


def checked_sarif(content):
    """The results of the only run, if the log keeps to what the standard requires."""
    log = json.loads(content)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert run["tool"]["driver"]["name"] == "gcbench"
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert len(rules) == len(run["tool"]["driver"]["rules"])
    for result in run["results"]:
        assert result["ruleId"] in rules
        assert result["level"] in {"none", "note", "warning", "error"}
        assert result["message"]["text"].endswith(".")
        (location,) = result["locations"]
        assert location["logicalLocations"][0]["fullyQualifiedName"]
        if physical := location.get("physicalLocation"):
            artifact = physical["artifactLocation"]
            assert artifact["uriBaseId"] in run["originalUriBaseIds"]
            assert re.fullmatch(r"[A-Za-z0-9_.~/%-]+", artifact["uri"])
            assert physical["region"]["startLine"] >= 1
    assert len(run["results"]) <= MOST_RESULTS
    return run["results"]


def place(result):
    """The file, line and name that a result is about."""
    (location,) = result["locations"]
    name = location["logicalLocations"][0]["fullyQualifiedName"]
    if "physicalLocation" not in location:
        return "", 0, name
    physical = location["physicalLocation"]
    return unquote(physical["artifactLocation"]["uri"]), physical["region"]["startLine"], name


@given(counted(), counted())
def test_each_function_that_is_dearer_is_a_warning_at_its_line(after, before):
    result = explained(after, before)
    content = sarif_log(result)
    found = checked_sarif(content)
    dearer = []
    for change in result.changes:
        now, then = change.costs_after, change.costs_before
        if change.after and any(
            Fraction(getattr(now, count), after.num_rows)
            > Fraction(getattr(then, count), before.num_rows)
            for count in COUNTS
        ):
            where = change.after[0]
            in_a_file = not where.file.startswith("<")
            dearer.append(
                (where.file, max(where.line, 1), where.name) if in_a_file else ("", 0, where.name)
            )
    assert sorted(map(place, found)) == sorted(dearer)
    assert {each["level"] for each in found} <= {"warning"}
    assert sarif_log(result) == content


def test_the_largest_part_of_a_step_comes_first():
    before = costs(
        function("same", 1, 800, 80),
        function("dearer", 10, 800),
        function("cheaper", 20, 800),
        function("keeps", 30, 800),
        function("gone", 40, 800),
    )
    after = costs(
        function("same", 2, 800, 80),
        function("dearer", 11, 1184),
        function("cheaper", 21, 400),
        function("keeps", 31, 792, 20),
        function("__init__(self, a)", 2, 8, file="<string>"),
        function("made", 41, 100, 10, "pkg/my file.py", "schedule"),
    )
    found = checked_sarif(sarif_log(explained(after, before)))
    assert [(each["ruleId"], *place(each), each["message"]["text"]) for each in found] == [
        (
            "more-tracked-objects",
            "pkg/a.py",
            31,
            "keeps",
            "keeps: -1 bytecode and +2.50 tracked objects per request and step since 0.13.0.",
        ),
        (
            "dearer-bytecodes",
            "pkg/a.py",
            11,
            "dearer",
            "dearer: +48 bytecodes per request and step since 0.13.0.",
        ),
        (
            "more-tracked-objects",
            "pkg/my file.py",
            41,
            "made",
            "made: +12.5 bytecodes and +1.25 tracked objects per request and step "
            "since 0.13.0. The function is new.",
        ),
        (
            "dearer-bytecodes",
            "",
            0,
            "__init__(self, a)",
            "__init__(self, a): +1 bytecode per request and step since 0.13.0. "
            "The function is new.",
        ),
    ]
    uri = found[2]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "pkg/my%20file.py"


def test_of_many_the_largest_are_kept():
    before = costs(*(function(f"f{i}", i, 1000) for i in range(1, 80)))
    after = costs(*(function(f"f{i}", i, 1000 + i) for i in range(1, 80)))
    found = checked_sarif(sarif_log(explained(after, before)))
    assert [place(each)[1] for each in found] == list(range(79, 79 - MOST_RESULTS, -1))


def test_of_one_version_the_dearest_are_notes():
    after = costs(*(function(f"f{i}", 1 + i, 8 * i, i % 2) for i in range(80)))
    found = checked_sarif(sarif_log(explained(after)))
    assert [place(each)[2] for each in found] == [f"f{i}" for i in range(79, 79 - MOST_RESULTS, -1)]
    assert {(each["ruleId"], each["level"]) for each in found} == {("dearest-functions", "note")}
    assert [each["message"]["text"] for each in found[:2]] == [
        "f79: 79 bytecodes and 0.125 tracked objects per request and step in 0.13.1.",
        "f78: 78 bytecodes per request and step in 0.13.1.",
    ]


def test_a_function_of_two_stages_is_one_note():
    after = costs(
        function("f", 1, 24, 8), function("g", 2, 32), function("f", 1, 16, 0, stage="wait")
    )
    found = checked_sarif(sarif_log(explained(after)))
    assert [each["message"]["text"] for each in found] == [
        "f: 5 bytecodes and 1 tracked object per request and step in 0.13.1.",
        "g: 4 bytecodes per request and step in 0.13.1.",
    ]


def test_a_toy_is_noted_where_it_is_written():
    _, of = toy()
    (inner,) = (
        each
        for each in checked_sarif(sarif_log(explained(of)))
        if place(each)[2].endswith(".inner")
    )
    file, line, _ = place(inner)
    assert file.endswith("test_exports.py")
    assert line == toy.__code__.co_firstlineno + 1
