"""Where a cost came in, along several versions: what was planted in each comes with that one."""

import re
from itertools import pairwise

import pytest
from counted_versions import ENGINE, FILE, counted
from golden_text import reported
from made_functions import BOTH, JOIN, SUM, function
from msgspec.structs import replace
from release_results import along

from gcbench.function_costs import FunctionCost
from harness.explain.changes import function_changes
from harness.explain.growth import arrivals
from harness.explain.result import By, ExplainResult, GrowthBody, Side
from harness.explain.version_cost import version_cost
from harness.report.growth import growth_answer, growth_tables
from harness.report.growth_image import growth_image
from harness.report.known_releases import known_releases
from harness.trial.step_costs import StepCosts

LOOP = (
    "        return rows\n\n    def update",
    """        for _ in range(64):
            pass
        return rows

    def update""",
)
TOKEN = "            token = self"
DICTIONARY = (TOKEN, f"            kept.append({{1: request}})\n{TOKEN}")


@pytest.fixture(scope="module")
def sides(frozen_heap, tmp_path_factory):
    """A version, one with a dictionary kept, one with a loop besides, and one without either."""
    texts = {"1.0": ENGINE, "2.0": ENGINE.replace(*DICTIONARY)}
    texts |= {"3.0": texts["2.0"].replace(*LOOP), "4.0": ENGINE}
    folder = tmp_path_factory.mktemp("versions")
    return [counted(folder / name, text) for name, text in texts.items()]


def grown(sides, by: By = "bytecodes") -> GrowthBody:
    """What `explain` would know of them."""
    return GrowthBody(by=by, versions=list(map(version_cost, sides)), arrivals=arrivals(sides))


def result(body: GrowthBody) -> ExplainResult:
    made = along({"0.11.0": 1})
    return ExplainResult(
        name="a-growth",
        command="gcbench explain",
        machine=made.machine,
        workloads=made.workloads[:1],
        axes={"engine": "builtin", "batch_size": 64},
        body=body,
    )


def test_each_function_comes_with_the_version_that_changed_it(sides):
    found = [(each.version, each.function, each.stage) for each in arrivals(sides)]
    assert found[:2] == [("2.0", "Engine.update", "update"), ("3.0", "Engine.schedule", "schedule")]
    assert sorted(found[2:]) == [
        ("4.0", "Engine.schedule", "schedule"),
        ("4.0", "Engine.update", "update"),
    ]


def test_arrivals_and_stages_add_up_to_each_version(sides):
    body = grown(sides)
    for before, after in pairwise(body.versions):
        mine = [each for each in body.arrivals if each.version == after.label]
        for figure in ("bytecodes", "objects"):
            change = getattr(after, figure) - getattr(before, figure)
            assert sum(getattr(each, figure) for each in mine) == pytest.approx(change)
    for version, side in zip(body.versions, sides, strict=True):
        total = sum(stage.bytecodes for stage in version.stages.values())
        assert total == pytest.approx(version.bytecodes)
        assert version.bytecodes == side.metrics["bytecodes"] / side.costs.num_rows


def test_the_answer_names_the_versions_that_cost_most(sides):
    body = grown(sides)
    told = " ".join(growth_answer(body))
    assert told.startswith("4.0 executes as many bytecodes per request and step as 1.0 (")
    more = [after.bytecodes - before.bytecodes for before, after in pairwise(body.versions)]
    order = ["2.0", "3.0"] if more[0] > more[1] else ["3.0", "2.0"]
    assert re.search(rf"Bytecodes rose most with {order[0]} .*, {order[1]} ", told)
    assert "4.0 (" not in told
    shown = reported(result(body))
    assert "Engine.update" not in shown.split("By function")[1], "what came has gone again"
    body = grown(sides[:3])
    assert re.match(r"3\.0 executes \S+ more bytecodes .* than 1\.0 \(", growth_answer(body)[0])
    shown = reported(result(body))
    for name, version in (("Engine.update", "2.0"), ("Engine.schedule", "3.0")):
        row = rf"{name}\n +{FILE}:\d+ +(\+\S+) +\S+ +{version} \1\n"
        assert re.search(row, shown)
    (alone,) = growth_answer(grown(sides[:1]))
    assert "name two or more" in alone


def test_by_objects_the_dictionary_comes_first_and_the_loop_is_nothing(sides):
    body = grown(sides[:3], "objects")
    assert re.search(r"^Objects rose most with 2\.0 \(\+\S+\)\.$", growth_answer(body)[1])
    versions, _, functions, _ = growth_tables(body, 20, known_releases("vllm-hostpath"))
    assert [row[-1].partition(" ")[0] for row in versions.groups[0]] == ["–", "update", "–"]
    (row,) = functions.groups[0]
    assert row[0].startswith("Engine.update")
    assert row[3] == f"2.0 {row[2]}"


def test_what_was_left_out_and_how_sure_samples_are_stands_in_the_answer(sides):
    costs = [replace(each.costs, every=25, samples=[(64, 640), (64, 700)]) for each in sides]
    sampled = [replace(side, costs=cost) for side, cost in zip(sides, costs, strict=True)]
    body = replace(grown(sampled[:3]), left_out=["0.9.1: too old"])
    traced, left_out = growth_answer(body)[-2:]
    assert re.fullmatch(
        r"One step in 25 was traced; bytecodes are right within ±\S+ % for [123]\.0 or better "
        r"\(95 %\)\.",
        traced,
    )
    assert left_out == "Left out: 0.9.1: too old."


def test_pull_requests_on_record_stand_with_their_release(sides):
    names = ("0.11.0", "0.11.1", "0.12.0", "0.13.0")
    body = grown([replace(side, label=name) for side, name in zip(sides, names, strict=True)])
    (rows,) = growth_tables(body, 20, known_releases("vllm-hostpath"))[-1].groups
    assert any(
        re.match(r"0\.11\.1: #24964, a request that gets no new", name) and more.startswith("+")
        for name, more in rows
    )
    assert not any("#24830" in name for name, _ in rows), "what the first has, none is without"


def test_the_picture_has_a_bar_a_version_and_is_the_same_each_time(sides):
    body = grown(sides)
    assert growth_image(result(body), body, ".png").startswith(b"\x89PNG")
    svg = growth_image(result(body), body, ".svg")
    assert svg == growth_image(result(body), body, ".svg")
    for word in ("schedule", "update", "rest", "4.0", f"{body.versions[2].bytecodes:,.0f}"):
        assert f"<!-- {word} -->".encode() in svg
    assert b"others" not in svg


def made(label: str, *functions: FunctionCost) -> Side:
    costs = StepCosts(num_steps=1, num_rows=1, functions=list(functions), calls=[])
    return Side(label=label, roots=[], costs=costs, metrics={})


def totals(sides: list[Side]) -> dict[str, float]:
    """What each function takes more over all versions, by its last name; as the table has it."""
    found = arrivals(sides)
    last = {each.series: each.function for each in found}
    assert len(set(last.values())) == len(last)
    return {
        name: sum(each.bytecodes for each in found if each.series == number)
        for number, name in last.items()
    }


def test_a_part_that_is_taken_out_on_the_way_counts_for_the_function_it_was_taken_from():
    """vLLM's `get_num_blocks_to_allocate` was +52 here and +48 where its ends were compared."""
    first = made("1.0", function(BOTH, "f", bytecodes=36))
    second = made("2.0", function(BOTH, "f", bytecodes=79))
    third = made("3.0", function(SUM, "f", bytecodes=75), function(JOIN, "part", bytecodes=10))
    last = made("4.0", function(SUM, "f", bytecodes=84), function(JOIN, "part", bytecodes=10))
    assert totals([first, second, third, last]) == {"f": 84 - 36, "part": 10}
    assert totals([last, third, second, first]) == {"f": 36 - 84, "part": -10}
    kinds = [(each.version, each.function, each.kind) for each in arrivals([second, third])]
    assert kinds == [("3.0", "f", "paired"), ("3.0", "part", "split")]


def test_a_function_is_one_whatever_its_name_and_file_and_if_it_comes_again():
    names = [
        ("A.f", "a.py"),
        ("B.f", "a.py"),
        ("B.f", "b.py"),
        None,
        ("B.f", "b.py"),
        ("B.renamed", "b.py"),
    ]
    sides = [
        made(str(number), *([function(SUM, *where, bytecodes=10 + number**2)] if where else []))
        for number, where in enumerate(names)
    ]
    assert totals(sides) == {"B.renamed": 25}
    (change,) = function_changes(sides[0].costs, sides[-1].costs)
    assert change.costs_after.bytecodes - change.costs_before.bytecodes == 25


def test_two_functions_of_one_name_stay_two():
    first = made("1.0", function(SUM, "g", line=1), function(JOIN, "g", line=9))
    second = made(
        "2.0", function(SUM, "g", line=1, bytecodes=15), function(JOIN, "g", line=9, bytecodes=3)
    )
    found = arrivals([first, second])
    assert sorted((each.line, each.bytecodes) for each in found) == [(1, 5), (9, -7)]
    assert len({each.series for each in found}) == 2
