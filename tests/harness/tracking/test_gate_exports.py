"""A gate as files of other programs: strict JSON, by their own schemas; and lines for GitHub."""

import json
import re
from math import inf, nan

import pytest
from gate_results import ARRAYS, EXACT, LISTS, cell, exact, result
from jsonschema import validate
from msgspec.structs import replace

from harness.explain.changed_functions import ChangedFunction
from harness.explain.largest_changes import LargestChange
from harness.metrics import METRICS
from harness.report.exports import Exported, exports
from harness.report.kinds import describe_result
from harness.result.result import NotExportedError
from harness.tracking.gate.result import GateResult

FIGURES = {
    "request_throughput": 51.5,
    "output_throughput": 25_000.0,
    "tpot_median": 0.0131,
    "host_time_per_step": 870e-6,
}
OF_FIGURES = ("action-benchmark-smaller", "action-benchmark-bigger", "bencher", "pytorch-hud")

BMF = {
    "$schema": "http://json-schema.org/draft-07/schema",
    "type": "object",
    "patternProperties": {
        ".+": {
            "type": "object",
            "patternProperties": {
                ".+": {
                    "type": "object",
                    "properties": {
                        name: {"type": "number"} for name in ("value", "lower_value", "upper_value")
                    },
                    "required": ["value"],
                }
            },
        }
    },
}
"""https://bencher.dev/bmf.json"""

_STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}


def _tuple(required, **properties):
    text = {name: {"type": "string"} for name in required}
    return {
        "type": "object",
        "properties": text | properties | {"extra_info": _STRINGS},
        "required": list(required),
        "additionalProperties": False,
    }


HUD = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "benchmark": _tuple(("name",), mode={"type": "string"}, dtype={"type": "string"}),
            "model": _tuple(
                ("name",),
                type={"type": "string"},
                backend={"type": "string"},
                origins={"type": "array", "items": {"type": "string"}},
            ),
            "metric": _tuple(
                ("name",),
                benchmark_values={"type": "array", "items": {"type": "number"}, "minItems": 1},
                target_value={"type": "number"},
            ),
        },
        "required": ["benchmark", "model", "metric"],
        "additionalProperties": False,
    },
}
"""The tuples of benchmark.oss_ci_benchmark_v3 that a job itself fills in, from
clickhouse_db_schema/oss_ci_benchmark_v3/schema.sql of pytorch/test-infra, 3c0eb5c3ab."""

ACTION = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("name", "unit", "extra", "range")}
        | {"value": {"type": "number"}},
        "required": ["name", "unit", "value"],
        "additionalProperties": False,
    },
}
"""BenchmarkResult in src/extract.ts of benchmark-action/github-action-benchmark, 04dcc2c41a."""

SCHEMAS = dict(zip(OF_FIGURES, (ACTION, ACTION, BMF, HUD), strict=True))


def refuse(constant: str):
    raise AssertionError(f"{constant} is no JSON")


def written(name: str, of: GateResult) -> bytes:
    return exports(GateResult)[name](Exported(of, describe_result(of), ""))


def values(of: GateResult) -> dict[str, dict[tuple[str, str], float]]:
    """By format what it says of each cell and metric, after its schema has been asked."""
    found = {name: json.loads(written(name, of), parse_constant=refuse) for name in OF_FIGURES}
    for name, document in found.items():
        validate(document, SCHEMAS[name])
    both = [*found["action-benchmark-smaller"], *found["action-benchmark-bigger"]]
    assert len({each["name"] for each in both}) == len(both), "the action knows them by name"
    return {
        "action": {tuple(each["name"].rsplit(" · ", 1)): each["value"] for each in both},
        "bencher": {
            (cell, metric): measure["value"]
            for cell, measures in found["bencher"].items()
            for metric, measure in measures.items()
        },
        "pytorch-hud": {
            (each["benchmark"]["extra_info"]["cell"], each["metric"]["name"]): value
            for each in found["pytorch-hud"]
            for value in each["metric"]["benchmark_values"]
        },
    }


def test_every_format_has_all_figures_of_head_and_is_what_its_program_reads():
    of = result(
        [cell(LISTS, "worse", exact(handoff_bytes=5.0), **FIGURES), cell(ARRAYS, "same", exact())]
    )
    expected = {
        (name, metric): value for name in (LISTS, ARRAYS) for metric, value in EXACT.items()
    }
    expected |= {(LISTS, metric): value for metric, value in FIGURES.items()}
    expected[LISTS, "handoff_bytes"] = 5.0
    assert values(of) == dict.fromkeys(("action", "bencher", "pytorch-hud"), expected)


def test_figures_come_with_direction_unit_and_commits():
    of = result([cell(LISTS, "worse", exact(handoff_bytes=5.0), **FIGURES)])
    for name, direction in (("smaller", "lower"), ("bigger", "higher")):
        for entry in json.loads(written(f"action-benchmark-{name}", of)):
            metric = METRICS[entry["name"].rsplit(" · ", 1)[1]]
            assert (metric.direction, metric.unit) == (direction, entry["unit"])
            assert of.head.sha in entry["extra"]
    for record in json.loads(written("pytorch-hud", of)):
        metric = record["metric"]
        assert metric.get("target_value") == EXACT.get(metric["name"]), "BASE's"
        assert metric["extra_info"]["direction"] == METRICS[metric["name"]].direction
        assert record["benchmark"]["extra_info"].items() >= {
            ("base", of.base.sha),
            ("head", of.head.sha),
        }


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_what_is_no_number_is_left_out(bad):
    of = result([cell(LISTS, "same", exact(handoff_bytes=bad), **(FIGURES | {"tpot_median": bad}))])
    for found in values(of).values():
        assert len(found) == len(EXACT) + len(FIGURES) - 2
        assert not {"handoff_bytes", "tpot_median"} & {metric for _, metric in found}


@pytest.mark.parametrize("name", OF_FIGURES)
def test_figures_with_a_gap_are_not_written(name):
    of = result([cell(LISTS, "same", exact())], missing=["a cell: its trial failed"])
    with pytest.raises(NotExportedError, match="not everything was measured"):
        written(name, of)


def change(line: int, **changes) -> LargestChange:
    made = LargestChange(
        when="step",
        kind="paired",
        function="Scheduler.schedule",
        before="Scheduler.schedule",
        file="engines/builtin/scheduler.py",
        line=line,
        text="x",
        bytecodes=7.01,
        allocations=0.0,
    )
    return replace(made, **changes)


COMMAND = re.compile(r"::(error|warning|notice) ((?:[a-z]+=[^,:]*,?)+)::(.*)")


def marks(of: GateResult) -> list[tuple[str, dict[str, str], str]]:
    """Level, properties and text of each command, as GitHub's runner reads them."""
    lines = written("github-annotations", of).decode().splitlines()
    found = [COMMAND.fullmatch(line).groups() for line in lines]
    return [
        (
            level,
            {name: read(value) for name, value in (each.split("=") for each in given.split(","))},
            read(text),
        )
        for level, given, text in found
    ]


def read(escaped: str) -> str:
    for code, character in (("%3A", ":"), ("%2C", ","), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        escaped = escaped.replace(code, character)
    return escaped


def test_a_file_is_named_from_the_top_of_the_repository():
    functions = [change(98, file="toy/scheduler.py"), change(7, file="engines/adapted.py")]
    of = replace(cell(LISTS, "worse", exact()), functions=functions)
    _, *places = marks(replace(result([of]), package="src/toy"))
    assert [given["file"] for _, given, _ in places] == [
        "src/toy/scheduler.py",
        "engines/adapted.py",
    ]


@pytest.mark.parametrize("verdict", ["worse", "trade"])
def test_a_loss_stands_at_the_lines_it_is_made_of(verdict):
    functions = [
        change(98),
        change(7, function="<string>", file="a,b:c%0A.py", when="add", allocations=1.0),
        change(120, bytecodes=-3.0),
        change(130, kind="gone"),
    ]
    of = replace(cell(LISTS, verdict, exact(handoff_bytes=5e6)), functions=functions)
    first, *places = marks(result([of, replace(of, id=ARRAYS)]))
    assert first[:2] == ("error", {"title": f"gcbench gate: {verdict}"})
    assert "the hand-off of a step takes more bytes" in first[2]
    assert [(level, given["file"], given["line"]) for level, given, _ in places] == [
        ("error", "engines/builtin/scheduler.py", "98"),
        ("error", "a,b:c%0A.py", "7"),
    ], "once, though two cells have it; no gain, and nothing that HEAD has not"
    assert [text for *_, text in places] == [
        "Scheduler.schedule: +7.01 bytecodes per request and step",
        "<string>: +7.01 bytecodes and +1 tracked objects per request, add",
    ]


@pytest.mark.parametrize("verdict", ["same", "better", "accepted", "inconclusive"])
def test_what_is_no_loss_marks_no_line(verdict):
    of = replace(cell(LISTS, verdict, exact()), functions=[change(98)])
    ((level, _, _),) = marks(result([of]))
    assert level == "notice"


def test_functions_that_no_cell_has_run_are_warned_of_at_their_line():
    of = replace(
        result([cell(LISTS, "same", exact())]),
        not_run=[ChangedFunction(file="engines/a.py", name="f", line=3)],
    )
    *_, (level, given, text) = marks(of)
    assert (level, given["file"], given["line"]) == ("warning", "engines/a.py", "3")
    assert text == "no cell has run f, which differs"


def test_no_more_errors_than_github_shows_of_a_step():
    of = replace(cell(LISTS, "worse", exact()), functions=[change(line) for line in range(40)])
    assert len(marks(result([of]))) == 10
