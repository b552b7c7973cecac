"""Figures for github-action-benchmark: strict JSON, and each file one direction."""

import json
from math import inf, nan

import pytest
from gate_results import ARRAYS, EXACT, LISTS, cell, exact, result

from harness.files import StoreError
from harness.metrics import METRICS
from harness.tracking.gate.export import write_github_action_benchmark

FIGURES = {
    "request_throughput": 51.5,
    "output_throughput": 25_000.0,
    "tpot_median": 0.0131,
    "host_time_per_step": 870e-6,
}


def refuse(constant: str):
    raise AssertionError(f"{constant} is no JSON")


def written(path, of):
    files = write_github_action_benchmark(path, of)
    return [json.loads(file.read_text(), parse_constant=refuse) for file in files]


def test_each_file_has_the_figures_of_its_direction_and_what_the_action_asks_for(tmp_path):
    of = result(
        [cell(LISTS, "worse", exact(handoff_bytes=5.0), **FIGURES), cell(ARRAYS, "same", exact())]
    )
    smaller, bigger = written(tmp_path / "gate.json", of)
    for entries, direction in ((smaller, "lower"), (bigger, "higher")):
        for entry in entries:
            assert entry.keys() == {"name", "unit", "value", "extra"}
            assert isinstance(entry["value"], float)
            name, metric = entry["name"].rsplit(" · ", 1)
            assert name in (LISTS, ARRAYS)
            assert METRICS[metric].direction == direction
            assert entry["unit"] == METRICS[metric].unit
            assert of.head.sha in entry["extra"]
        names = [entry["name"] for entry in entries]
        assert len(set(names)) == len(names), "the action tells benchmarks apart by name"
    values = {entry["name"]: entry["value"] for entry in smaller + bigger}
    assert values[f"{LISTS} · handoff_bytes"] == 5.0, "HEAD's, not BASE's"
    assert values[f"{ARRAYS} · handoff_bytes"] == EXACT["handoff_bytes"]
    assert values[f"{LISTS} · request_throughput"] == 51.5
    assert len(values) == 2 * len(EXACT) + len(FIGURES)


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_what_is_no_number_is_left_out(tmp_path, bad):
    of = result([cell(LISTS, "same", exact(handoff_bytes=bad), **(FIGURES | {"tpot_median": bad}))])
    smaller, bigger = written(tmp_path / "gate.json", of)
    names = " ".join(entry["name"] for entry in smaller + bigger)
    assert "handoff_bytes" not in names
    assert "tpot_median" not in names
    assert len(smaller) + len(bigger) == len(EXACT) + len(FIGURES) - 2


def test_nothing_measured_is_two_empty_lists(tmp_path):
    assert written(tmp_path / "gate.json", result()) == [[], []]


@pytest.mark.parametrize("name", ["gate", "gate.json", "gate.v1", "a b.json"])
def test_the_names_of_the_files(tmp_path, name):
    files = write_github_action_benchmark(tmp_path / name, result())
    stem = name.removesuffix(".json")
    assert [file.name for file in files] == [f"{stem}.smaller.json", f"{stem}.bigger.json"]
    assert sorted(tmp_path.iterdir()) == sorted(files)


def test_a_folder_that_is_not_there_is_named_with_its_option(tmp_path):
    path = tmp_path / "nowhere" / "gate.json"
    with pytest.raises(StoreError, match=r"nowhere.*--github-action-benchmark FILE"):
        write_github_action_benchmark(path, result())
    assert not path.parent.exists()
