"""Where a cost came in, along several versions: what was planted in each comes with that one."""

import re
from itertools import pairwise

import pytest
from counted_versions import ENGINE, FILE, counted
from golden_text import shown_by
from made_functions import BOTH, JOIN, SUM, function
from msgspec.structs import replace
from release_results import along

from gcbench.function_costs import FunctionCost
from harness.cli import growth as growth_command
from harness.explain.changes import function_changes
from harness.explain.growth import Growth, arrivals, version_cost
from harness.explain.result import Side
from harness.report.growth import growth_answer, growth_candidates
from harness.report.growth_image import growth_image
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


def grown(sides) -> Growth:
    """What `releases --explain` would know of them."""
    made = along({"0.11.0": 1})
    return Growth(
        name="a-growth",
        command="gcbench releases vllm --explain",
        machine=made.machine,
        workload=made.workloads[0],
        axes={"batch_size": 64},
        versions=[version_cost(side) for side in sides],
        arrivals=arrivals(sides),
        notes=[],
    )


def test_each_function_comes_with_the_version_that_changed_it(sides):
    found = [(each.version, each.function, each.stage) for each in arrivals(sides)]
    assert found[:2] == [("2.0", "Engine.update", "update"), ("3.0", "Engine.schedule", "schedule")]
    assert sorted(found[2:]) == [
        ("4.0", "Engine.schedule", "schedule"),
        ("4.0", "Engine.update", "update"),
    ]


def test_arrivals_and_stages_add_up_to_each_version(sides):
    result = grown(sides)
    for before, after in pairwise(result.versions):
        mine = [each for each in result.arrivals if each.version == after.label]
        for figure in ("bytecodes", "objects"):
            change = getattr(after, figure) - getattr(before, figure)
            assert sum(getattr(each, figure) for each in mine) == pytest.approx(change)
    for version, side in zip(result.versions, sides, strict=True):
        total = sum(stage.bytecodes for stage in version.stages.values())
        assert total == pytest.approx(version.bytecodes)
        assert version.bytecodes == side.metrics["bytecodes"] / side.costs.num_rows


def test_the_answer_names_the_versions_that_cost_most(sides):
    result = grown(sides)
    told = " ".join(growth_answer(result))
    assert re.search(r"From 1\.0 to 4\.0 a request and step went from \S+ to \S+ bytecodes", told)
    more = [after.bytecodes - before.bytecodes for before, after in pairwise(result.versions)]
    order = ["2.0", "3.0"] if more[0] > more[1] else ["3.0", "2.0"]
    assert re.search(rf"Bytecodes rose most with {order[0]} .*, {order[1]} ", told)
    assert "4.0 (" not in told
    shown = shown_by(growth_command, result)
    assert max(map(len, shown.splitlines())) <= 80
    assert "Engine.update" not in shown.split("By function")[1], "what came has gone again"
    shown = shown_by(growth_command, grown(sides[:3]))
    for name, version in (("Engine.update", "2.0"), ("Engine.schedule", "3.0")):
        row = rf"{name}\n +{FILE}:\d+ +(\+\S+) +\S+ +{version} \1\n"
        assert re.search(row, shown)
    (alone,) = growth_answer(grown(sides[:1]))
    assert "name two or more" in alone


def test_pull_requests_on_record_stand_with_their_release(sides):
    names = ("0.11.0", "0.11.1", "0.12.0", "0.13.0")
    result = grown([replace(side, label=name) for side, name in zip(sides, names, strict=True)])
    lines = growth_candidates(result)
    assert any(
        re.match(r"0\.11\.1 \(\+\S+\): #24964, a request that gets no new", line) for line in lines
    )
    assert not any("#24830" in line for line in lines), "what the first has, none is without"


def test_the_picture_has_a_bar_a_version_and_is_the_same_each_time(sides):
    result = grown(sides)
    assert growth_image(result, ".png").startswith(b"\x89PNG")
    svg = growth_image(result, ".svg")
    assert svg == growth_image(result, ".svg")
    for word in ("schedule", "update", "rest", "4.0", f"{result.versions[2].bytecodes:,.0f}"):
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
