"""Where a cost came in, along several versions: what was planted in each comes with that one."""

import re
from itertools import pairwise

import pytest
from counted_versions import ENGINE, FILE, counted
from golden_text import shown_by
from msgspec.structs import replace
from release_results import along

from harness.cli import growth as growth_command
from harness.explain.growth import Growth, arrivals, version_cost
from harness.report.growth import growth_answer, growth_candidates
from harness.report.growth_image import growth_image

LOOP = ("        return rows\n\n    def update", """        for _ in range(64):
            pass
        return rows

    def update""")  # fmt: skip
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
        name="a-growth", command="gcbench releases vllm --explain", machine=made.machine,
        workload=made.workloads[0], axes={"batch_size": 64},
        versions=[version_cost(side) for side in sides], arrivals=arrivals(sides), notes=[],
    )  # fmt: skip


def test_each_function_comes_with_the_version_that_changed_it(sides):
    found = [(each.version, each.function, each.stage) for each in arrivals(sides)]
    assert found[:2] == [
        ("2.0", "Engine.update", "update"), ("3.0", "Engine.schedule", "schedule"),
    ]  # fmt: skip
    assert sorted(found[2:]) == [
        ("4.0", "Engine.schedule", "schedule"), ("4.0", "Engine.update", "update"),
    ]  # fmt: skip


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
    for function, version in (("Engine.update", "2.0"), ("Engine.schedule", "3.0")):
        row = rf"{function}\n +{FILE}:\d+ +(\+\S+) +\S+ +{version} \1\n"
        assert re.search(row, shown)
    (alone,) = growth_answer(grown(sides[:1]))
    assert "name two or more" in alone


def test_pull_requests_on_record_stand_with_their_release(sides):
    names = ("0.11.0", "0.11.1", "0.12.0", "0.13.0")
    result = grown([replace(side, label=name) for side, name in zip(sides, names, strict=True)])
    lines = growth_candidates(result)
    assert any(re.match(r"0\.11\.1 \(\+\S+\): #24964, a request that gets no new", line)
               for line in lines)  # fmt: skip
    assert not any("#24830" in line for line in lines), "what the first has, none is without"


def test_the_picture_has_a_bar_a_version_and_is_the_same_each_time(sides):
    result = grown(sides)
    assert growth_image(result, ".png").startswith(b"\x89PNG")
    svg = growth_image(result, ".svg")
    assert svg == growth_image(result, ".svg")
    for word in ("schedule", "update", "rest", "4.0", f"{result.versions[2].bytecodes:,.0f}"):
        assert f"<!-- {word} -->".encode() in svg
    assert b"others" not in svg
