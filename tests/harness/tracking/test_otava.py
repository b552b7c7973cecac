"""The export for Apache Otava, against a reader that takes its importer's steps."""

import csv
import json
import math
import os
from datetime import datetime
from pathlib import Path

import pytest
from asv_writer import Benchmark, write_benchmarks, write_commit

from harness.cli.main import main
from harness.tracking import history
from harness.tracking.otava import CONFIG, otava_files

GOLDEN = Path(__file__).parents[2] / "golden"
NASTY = 'it\'s "quoted", with a comma: and #1 {braces} ünïcode'
GEN0 = Benchmark("suite.track_gen0", {"gc": ["default", NASTY]}, attributes={"direction": "lower"})
SPEED = Benchmark("suite.track_speed", attributes={"direction": "higher"})
SHAPE = Benchmark("suite.track_shape")


def read(files: dict[str, str]) -> dict[str, dict[str, list[tuple[str, str, float]]]]:
    """By test and metric its (time, commit, value), as `CsvImporter` takes them; it raises too."""
    tests = {}
    for name, test in json.loads(files[CONFIG])["tests"].items():
        assert test["type"] == "csv"
        header, *rows = csv.reader(files[test["file"]].splitlines(), delimiter=",", quotechar='"')
        time = header.index(test["time_column"])
        (commit,) = (header.index(each) for each in test["attributes"])
        assert all(len(row) >= len(header) for row in rows)
        tests[name] = {
            metric: [(row[time], row[commit], float(row[header.index(metric)])) for row in rows]
            for metric in test["metrics"]
        }
    return tests


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Three commits, the last of them first; two series are missing at one each."""
    folder = tmp_path / "asv"
    write_benchmarks(folder, [GEN0, SPEED, SHAPE])
    for number, commit in ((3, "c" * 40), (1, "a" * 40), (2, "b" * 40)):
        speed = None if number == 2 else 10.0 + number
        write_commit(
            folder,
            commit,
            20_000 + number,
            [
                (GEN0, [100 + number, float("nan") if number == 3 else 0]),
                (SPEED, [speed]),
                (SHAPE, [number / 3]),
            ],
            machine="box @home",
        )
    return folder


def test_every_measured_value_comes_through_and_no_other(results):
    figures = history.load_history(results).figures
    found = read(otava_files(figures))
    told = {
        (commit, metric): value
        for test in found.values()
        for metric, points in test.items()
        for _, commit, value in points
    }
    measured = figures[figures["value"].notna()]
    assert told == {(row.commit, row.series): row.value for row in measured.itertuples()}
    assert all(map(math.isfinite, told.values()))


def test_commits_are_in_the_order_of_their_dates(results):
    for test in read(otava_files(history.load_history(results).figures)).values():
        for points in test.values():
            times = [datetime.strptime(time, "%Y-%m-%d %H:%M:%S %z") for time, *_ in points]
            assert times == sorted(times)


def test_directions_and_names(results):
    files = otava_files(history.load_history(results).figures)
    tests = json.loads(files[CONFIG])["tests"]
    assert list(tests) == ["box-home.py3.11", "box-home.py3.11.2", "box-home.py3.11.3"]
    assert set(files) == {CONFIG, *(f"{name}.csv" for name in tests)}
    ways = {
        metric: of["direction"] for test in tests.values() for metric, of in test["metrics"].items()
    }
    assert ways == {
        "suite.track_gen0('default')": -1,
        f"suite.track_gen0({NASTY!r})": -1,
        "suite.track_speed": 1,
        "suite.track_shape": 0,
    }


def test_figures_of_benchmarks_as_they_were_before_are_left_out(results):
    write_benchmarks(results, [GEN0, SPEED._replace(version="2"), SHAPE])
    found = read(otava_files(history.load_history(results).figures))
    assert not [metric for test in found.values() for metric in test if "speed" in metric]


def test_the_command_writes_what_stands_in_the_golden_files(tmp_path, capfd):
    table, folder = tmp_path / "figures.csv", tmp_path / "otava"
    asv = str(GOLDEN / "asv")
    assert main(["report", asv, "--csv", str(table), "--otava", str(folder)]) == 0
    capfd.readouterr()
    kept = GOLDEN / "otava"
    made = {path.name: path.read_text() for path in (table, *sorted(folder.iterdir()))}
    if os.environ.get("UPDATE_GOLDEN"):
        kept.mkdir(exist_ok=True)
        for name, text in made.items():
            (kept / name).write_text(text)
    assert made == {path.name: path.read_text() for path in kept.iterdir()}


def test_the_table_goes_to_standard_output_alone(capfd):
    assert main(["report", str(GOLDEN / "asv"), "--metric", "gen0", "--csv", "-"]) == 0
    rows = list(csv.DictReader(capfd.readouterr().out.splitlines()))
    assert {row["metric"] for row in rows} == {"gen0"}
    figures = history.load_history(GOLDEN / "asv").figures
    assert len(rows) == (figures["metric"] == "gen0").sum()
    assert {float(row["value"]) for row in rows if row["value"]} == {0.0, 100.0, 130.0}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--json", "-", "--csv", "-"], "--json - and --csv - both go to standard output"),
        (["--csv", "/nowhere/figures.csv"], "--csv /nowhere/figures.csv: cannot be written"),
    ],
)
def test_what_cannot_be_written_is_refused_in_a_sentence(capfd, arguments, says):
    assert main(["report", str(GOLDEN / "asv"), *arguments]) == 2
    assert says in capfd.readouterr().err
