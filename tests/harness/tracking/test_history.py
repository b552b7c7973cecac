"""asv's results as frames: real files, asv's own reader beside ours, and files that are broken."""

import json
import math
import os
import shutil
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest
from asv_writer import Benchmark, write_benchmarks, write_commit
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from harness.tracking import history
from harness.tracking.asv.benchmarks import read_unit
from harness.tracking.frames import FRAME_COLUMNS, parameter_column

GOLDEN = Path(__file__).parents[2] / "golden" / "asv"
OLD, NEW = "2d0fc14ed1cb6bd2c406f0fe18304f444ac65be3", "078ebfa83b7964e9283138042a8038ccc3dc68fc"


@pytest.fixture
def results(tmp_path):
    """A copy of real results, to be damaged."""
    return Path(shutil.copytree(GOLDEN, tmp_path / "results"))


@pytest.fixture(scope="module")
def figures() -> pd.DataFrame:
    found = history.load_history(GOLDEN)
    return found.figures.join(found.parameters, on="series")


def one(figures: pd.DataFrame, **what: object) -> dict:
    """The one row that has these values."""
    for column, value in what.items():
        figures = figures[figures[column] == value]
    assert len(figures) == 1
    return figures.to_dict("records")[0]


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def compare_with_asv(folder: Path) -> int:
    """Hold every current figure against what asv's own reader says; how many there were."""
    asv = pytest.importorskip("asv.results")
    from asv.util import load_json

    frame = history.load_history(folder).figures
    benchmarks = load_json(str(folder / "benchmarks.json"), 2)
    compared = 0
    for each in asv.iter_results(str(folder)):
        ours = frame[
            (frame["commit"] == each.commit_hash)
            & (frame["machine"] == each.params["machine"])
            & (frame["environment"] == each.env_name)
            & frame["is_current"]
        ].set_index("series")
        assert set(ours["date"]) == {pd.Timestamp(each.date, unit="ms", tz="UTC")}
        for name in each.get_result_keys(benchmarks):
            params = benchmarks[name]["params"]
            values = each.get_result_value(name, params)
            stats = each.get_result_stats(name, params)
            samples = each.get_result_samples(name, params)
            for point, value, stat, kept in zip(
                product(*params), values, stats, samples, strict=True
            ):
                row = ours.loc[f"{name}({', '.join(point)})" if point else name]
                is_figure = value is not None and math.isfinite(value)
                assert row["value"] == value if is_figure else math.isnan(row["value"])
                for side, key in (("ci_low", "ci_99_a"), ("ci_high", "ci_99_b")):
                    expected = (stat or {}).get(key, math.nan)
                    assert row[side] == expected or math.isnan(row[side]) == math.isnan(expected)
                assert row["samples"] == kept
                compared += 1
    assert compared == int(frame["is_current"].sum())
    return compared


def test_asv_reads_the_same_values():
    assert compare_with_asv(GOLDEN) == 112


def test_a_metric_brings_its_own_direction_and_asvs_types_have_theirs(figures):
    found = {
        row["metric"]: (row["unit"], row["direction"], row["kind"], row["noise_floor"])
        for row in figures.to_dict("records")
    }
    assert found == {
        "throughput": ("req/s", "higher", "timing", 0.05),
        "gen0": ("collections", "lower", "exact", 0.01),
        "bare": ("unit", "neither", "timing", 0.02),
        "endless": ("unit", "neither", "timing", 0.02),
        "always_fails": ("unit", "neither", "timing", 0.02),
        "time_sum": ("seconds", "lower", "timing", 0.02),
        "mem_list": ("bytes", "lower", "timing", 0.02),
        "peakmem_list": ("bytes", "lower", "timing", 0.02),
    }


def test_a_row_holds_what_was_measured_where_and_when(figures):
    row = one(
        figures,
        commit=NEW,
        machine="box-b",
        environment="virtualenv-py3.11-TOY1",
        metric="throughput",
        shape="flat",
        param_value=1024,
    )
    assert row["value"] == pytest.approx(1024 / 1.3 * 2 * 1.003)
    assert row["ci_low"] < row["value"] < row["ci_high"]
    assert len(row["samples"]) == 7
    assert row["date"] == pd.Timestamp("2026-01-03T12:00Z")
    assert row["measured"] > row["date"]
    assert row["duration"] > 0
    assert (row["suite"], row["benchmark"]) == ("suite", "suite.track_throughput")
    assert (row["version"], row["result_version"], row["is_current"]) == ("2", "2", True)


def test_what_gave_no_figure_says_why(figures):
    at = figures[(figures["commit"] == NEW) & (figures["machine"] == "box-a")]
    at = at[at["environment"] == "virtualenv-py3.11-TOY0"].set_index("series")
    gen0 = "suite.Collections.track_gen0"
    expected = {
        f"{gen0}('default')": ("measured", 130.0),
        f"{gen0}('disabled')": ("measured", 0.0),
        f"{gen0}('broken')": ("failed", None),
        f"{gen0}('left out')": ("none", None),
        "suite.track_always_fails": ("failed", None),
        "suite.track_endless": ("none", None),
    }
    for series, (outcome, value) in expected.items():
        row = at.loc[series]
        assert row["outcome"] == outcome, series
        assert row["value"] == value or (value is None and math.isnan(row["value"])), series


def test_an_endless_figure_is_a_problem_and_a_skipped_one_is_not():
    problems = history.load_history(GOLDEN).problems
    assert len(problems) == 8
    assert all("suite.track_endless is inf" in problem for problem in problems)


def test_parameters_are_columns_numbers_as_numbers(figures):
    assert list(figures.columns[len(FRAME_COLUMNS) :]) == ["gc", "shape", "param_value"]
    assert figures["param_value"].dtype == "Int64"
    assert set(figures["param_value"].dropna()) == {8, 1024}
    assert set(figures["shape"].dropna()) == {"lists", "flat"}
    assert figures.loc[figures["metric"] == "gen0", "shape"].isna().all()


NAMES = st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1, max_size=5)
VALUES = st.one_of(
    st.text(max_size=4),
    st.integers(-9, 9),
    st.sampled_from([True, None, 2**63, -(2**63)]),
    st.floats(allow_nan=False, allow_infinity=False),
)
NUMBERS = st.none() | st.floats() | st.sampled_from([0, 7, -(2**70), 10**400, -(10**400)])


@st.composite
def measured(draw):
    """Benchmarks, and a list of values for each of some commits."""
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    benchmarks = [
        Benchmark(
            f"suite.track_{name}",
            draw(
                st.dictionaries(
                    NAMES | st.sampled_from(FRAME_COLUMNS),
                    st.lists(VALUES, min_size=1, max_size=3, unique_by=repr),
                    max_size=3,
                )
            ),
        )
        for name in names
    ]
    commits = draw(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=3, unique=True))
    return benchmarks, {
        f"{commit:08x}": [
            draw(st.lists(NUMBERS, min_size=len(b.series), max_size=len(b.series)))
            for b in benchmarks
        ]
        for commit in commits
    }


@examples(30)
@given(measured())
def test_what_was_written_is_read_back(made):
    benchmarks, commits = made
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_benchmarks(folder, benchmarks)
        for day, (commit, values) in enumerate(commits.items()):
            write_commit(folder, commit, day, list(zip(benchmarks, values, strict=True)))
        found = history.load_history(folder)
    rows = {(row["commit"], row["series"]): row for row in found.figures.to_dict("records")}
    problems = 0
    for commit, values in commits.items():
        for benchmark, results in zip(benchmarks, values, strict=True):
            for series, result in zip(benchmark.series, results, strict=True):
                row = rows.pop((commit, series))
                is_number = result is not None and abs(result) <= 1.7976931348623157e308
                assert row["value"] == float(result) if is_number else math.isnan(row["value"])
                assert (row["outcome"] == "measured") == is_number
                assert (row["outcome"] == "failed") == (result is None)
                problems += not (is_number or result is None or repr(result) == "nan")
                assert row["is_current"]
    assert rows == {}
    assert len(found.problems) == problems


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_parameters_keep_their_values(values):
    column = parameter_column([*map(repr, values), None])
    assert pd.isna(column.iloc[-1])
    kinds = {type(value) for value in values}
    fit = all(-(2**63) <= value < 2**63 for value in values if isinstance(value, int))
    if kinds <= {int, float} and fit:
        assert column.dtype == ("Int64" if kinds == {int} else "float64")
    else:
        values = [value if isinstance(value, str) else repr(value) for value in values]
    assert list(column[:-1]) == values


def test_parameters_called_as_columns_are_kept_apart(tmp_path):
    benchmark = Benchmark("track_it", {"value": [7], "param_value": [8], "machine": ["m"]})
    write_benchmarks(tmp_path, [benchmark])
    write_commit(tmp_path, "aaaaaaaa", 1, [(benchmark, [1.0])])
    found = history.load_history(tmp_path)
    (row,) = found.figures.to_dict("records")
    assert (row["value"], row["machine"]) == (1.0, "box")
    assert list(found.parameters.loc[row["series"]]) == [7, 8, "m"]


def test_figures_of_a_benchmark_as_it_was_are_kept_and_set_apart(tmp_path):
    old, new = Benchmark("track_it", {"n": [1, 2]}, "1"), Benchmark("track_it", {"n": [2, 3]}, "2")
    write_benchmarks(tmp_path, [new])
    write_commit(tmp_path, "aaaaaaaa", 1, [(old, [1.0, 2.0])])
    write_commit(tmp_path, "bbbbbbbb", 2, [(new._replace(params=old.params), [1.0, 2.0])])
    write_commit(tmp_path, "cccccccc", 3, [(new, [1.0, 2.0]), (Benchmark("track_gone"), [7.0])])
    found = history.load_history(tmp_path)
    current = {
        (row["commit"][0], row["series"]): row["is_current"]
        for row in found.figures.to_dict("records")
    }
    assert current == {
        ("a", "track_it(1)"): False,
        ("a", "track_it(2)"): False,  # another version
        ("b", "track_it(1)"): False,
        ("b", "track_it(2)"): True,  # another point
        ("c", "track_it(2)"): True,
        ("c", "track_it(3)"): True,
        ("c", "track_gone"): False,
    }
    assert compare_with_asv_current(tmp_path) == {("b", 2.0), ("c", 1.0), ("c", 2.0)}


def test_a_figure_without_a_version_is_current_as_it_is_to_asv(tmp_path):
    benchmark = Benchmark("track_it")
    write_benchmarks(tmp_path, [benchmark])
    path = write_commit(tmp_path, "aaaaaaaa", 1, [(benchmark, [1.0])])
    path.write_text(path.read_text().replace('[[1.0], [], "1", 86400000, 0.5]', "[[1.0], []]"))
    (row,) = history.load_history(tmp_path).figures.to_dict("records")
    assert row["is_current"]
    assert pd.isna(row["result_version"])
    assert pd.isna(row["measured"])
    assert compare_with_asv(tmp_path) == 1


def compare_with_asv_current(folder: Path) -> set[tuple[str, float]]:
    """What asv takes for current."""
    asv = pytest.importorskip("asv.results")
    from asv.util import load_json

    benchmarks = load_json(str(folder / "benchmarks.json"), 2)
    return {
        (each.commit_hash[0], value)
        for each in asv.iter_results(str(folder))
        for name in each.get_result_keys(benchmarks)
        for value in each.get_result_value(name, benchmarks[name]["params"])
        if value is not None
    }


def break_text(what: str):
    return lambda path: path.write_text(what)


def edit(**changes: object):
    def change(path: Path) -> None:
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def remove_key(key: str):
    def change(path: Path) -> None:
        found = json.loads(path.read_text())
        del found[key]
        path.write_text(json.dumps(found))

    return change


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


RESULT = "box-a/078ebfa8-virtualenv-py3.11-TOY0.json"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (halve, "cut short or not JSON"),
        (break_text(""), "cut short or not JSON"),
        (break_text("[]"), "says no version"),
        (edit(version=1), "format 1, this gcbench reads 2; `asv update`"),
        (edit(version=3), "format 3"),
        (remove_key("version"), "says no version"),
        (remove_key("commit_hash"), "commit_hash"),
        (remove_key("results"), "results"),
        (edit(date="yesterday"), "date"),
        (edit(date=10**20), "date"),
        (edit(date=10**13), "date"),
        (edit(results=[1, 2]), "results"),
        (edit(params={}), "names no machine"),
        (edit(params={"machine": "box-b"}), "lies with those of 'box-a'"),
        (loop, "cannot be read"),
    ],
)
def test_a_result_that_cannot_be_read_is_named_and_left_out(results, damage, says):
    damage(results / RESULT)
    found = history.load_history(results)
    assert len(found.figures) == 112 - 14
    (problem,) = [each for each in found.problems if "track_endless" not in each]
    assert RESULT in problem
    assert says in problem
    assert "left out: measure its commit again or remove it" in problem
    assert "\n" not in problem


@pytest.mark.parametrize(
    "row",
    [
        [["fast"], []],
        ["fast", []],
        [[{"samples": [1]}], []],
        [[1.0], "n"],
        7,
        [[1.0], [], {"version": 1}],
        [[1.0], [], "1", "today"],
    ],
)
def test_a_row_that_is_no_figure_spoils_no_other(results, row):
    path = results / RESULT
    found = json.loads(path.read_text())
    found["results"]["suite.track_bare"] = row
    path.write_text(json.dumps(found))
    read = history.load_history(results)
    problems = [each for each in read.problems if "track_endless" not in each]
    assert len(problems) == 1
    assert RESULT in problems[0]
    bare = read.figures[read.figures["metric"] == "bare"]
    assert int(bare["value"].notna().sum()) == 7
    assert len(read.figures) in (111, 112)


@pytest.mark.parametrize("kept", [0, 1, 3, 5])
def test_values_that_are_not_as_many_as_the_points_are_said(results, kept):
    path = results / RESULT
    found = json.loads(path.read_text())
    row = found["results"]["suite.track_throughput"]
    row[0] = [1.0, 2.0, 3.0, 4.0, 5.0][:kept]
    path.write_text(json.dumps(found))
    read = history.load_history(results)
    problems = [each for each in read.problems if "track_endless" not in each]
    assert [f"has {kept} values for 4 points" in each for each in problems] == [True]
    at = read.figures[(read.figures["commit"] == NEW) & (read.figures["metric"] == "throughput")]
    at = at[(at["machine"] == "box-a") & (at["environment"] == "virtualenv-py3.11-TOY0")]
    expected = [1.0, 2.0, 3.0, 4.0][:kept]
    assert list(at["value"])[:kept] == expected
    assert list(at["outcome"]) == (["measured"] * 4)[:kept] + ["failed"] * (4 - len(expected))


def test_without_benchmarks_the_names_alone_tell(results):
    (results / "benchmarks.json").unlink()
    found = history.load_history(results)
    assert len(found.figures) == 112
    assert found.figures["is_current"].all()
    assert any("benchmarks.json" in each and "just-discover" in each for each in found.problems)
    assert list(found.parameters) == ["param1", "param2"]
    directions = dict(zip(found.figures["metric"], found.figures["direction"], strict=True))
    assert directions == {
        "throughput": "neither",
        "gen0": "neither",
        "bare": "neither",
        "endless": "neither",
        "always_fails": "neither",
        "time_sum": "lower",
        "mem_list": "lower",
        "peakmem_list": "lower",
    }


@pytest.mark.parametrize(
    ("attribute", "value", "column", "usual"),
    [
        ("direction", "up", "direction", "neither"),
        ("direction", ["higher"], "direction", "neither"),
        ("kind", 1, "kind", "timing"),
        ("noise_floor", "5 %", "noise_floor", 0.02),
        ("noise_floor", -1, "noise_floor", 0.02),
        ("least_change", math.inf, "least_change", 0.0),
    ],
)
def test_an_attribute_that_cannot_be_is_said(tmp_path, attribute, value, column, usual):
    benchmark = Benchmark("track_it", attributes={attribute: value})
    write_benchmarks(tmp_path, [benchmark])
    write_commit(tmp_path, "aaaaaaaa", 1, [(benchmark, [1.0])])
    found = history.load_history(tmp_path)
    assert found.figures[column].tolist() == [usual]
    (problem,) = found.problems
    assert "track_it" in problem
    assert attribute in problem


def test_without_its_file_a_machine_is_named_by_its_results(results):
    (results / "box-b/machine.json").unlink()
    found = history.load_history(results)
    assert len(found.figures) == 112
    assert set(found.figures["machine"]) == {"box-a", "box-b"}
    assert sum("box-b/machine.json" in each for each in found.problems) == 1


def test_a_commit_twice_is_read_once(results):
    path = results / RESULT
    shutil.copy(path, path.with_name("copied-of-it.json"))
    found = history.load_history(results)
    assert len(found.figures) == 112
    assert sum("same commit" in each for each in found.problems) == 1


@pytest.mark.parametrize("path", ["box-b", RESULT])
def test_what_may_not_be_read_is_named(results, path):
    mode = (results / path).stat().st_mode
    (results / path).chmod(0)
    try:
        if os.access(results / path, os.R_OK):
            pytest.skip("everything is allowed to this user")
        found = history.load_history(results)
    finally:
        (results / path).chmod(mode)
    assert any(path in each and "Permission denied" in each for each in found.problems)
    assert 0 < len(found.figures) < 112


@pytest.mark.parametrize("path", [".", "box-a", RESULT])
def test_where_nothing_may_be_read_it_is_an_error(results, path):
    mode = results.stat().st_mode
    results.chmod(0)
    try:
        if os.access(results, os.R_OK):
            pytest.skip("everything is allowed to this user")
        with pytest.raises(ValueError, match="Permission denied") as caught:
            history.load_history(results / path)
    finally:
        results.chmod(mode)
    assert "\n" not in str(caught.value)


def test_a_reader_leaves_everything_as_it_is(results):
    (results / RESULT).write_text("{")
    before = content(results)
    history.load_history(results)
    assert content(results) == before


def named(folder, name):
    """A file whose name alone is a bit like one of asv's."""
    folder.mkdir()
    (folder / name).write_text("{}")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: None, "holds neither asv's results nor raw trials"),
        (lambda folder: folder.rmdir(), "there is no folder"),
        (lambda folder: (folder / "notes.txt").touch(), "holds neither"),
        (lambda folder: (folder / "trials").mkdir(), "holds neither"),
        (lambda folder: named(folder / "published", "gates-on-py3.13.json"), "holds neither"),
        (lambda folder: (folder / "benchmarks.json").write_text("{"), "benchmarks.json is cut"),
        (lambda folder: shutil.copy(GOLDEN / "box-a/machine.json", folder), "one machine"),
    ],
)
def test_where_nothing_can_be_read_it_is_an_error(tmp_path, make, says):
    folder = tmp_path / "results"
    folder.mkdir()
    make(folder)
    with pytest.raises(ValueError, match=says) as caught:
        history.load_history(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_ways_in(tmp_path):
    shutil.copytree(GOLDEN, tmp_path / "results" / "asv")
    conf = tmp_path / "asv.conf.json"
    conf.write_text('{"version": 1, "results_dir": "results/asv"} // where they are')
    for way in (tmp_path / "results" / "asv", tmp_path / "results", conf, str(conf)):
        assert len(history.load_history(way).figures) == 112
    conf.write_text('{"version": 1, "result_dir": "results/asv"}')
    found = history.load_history(conf)  # `results`, asv's own default
    assert len(found.figures) == 112
    problem = found.problems[0]
    assert "'result_dir'" in problem
    assert problem.endswith("the nearest that both know is 'results_dir'.")
    conf.write_text('{"version": 1, "result_dir": "results/asv", "results_dir": "elsewhere"}')
    with pytest.raises(ValueError, match="there is no folder"):
        history.load_history(conf)


@pytest.mark.parametrize(
    ("unit", "means"),
    [
        ("Seconds (lower is better)", ("seconds", "lower")),
        ("seconds", ("seconds", "lower")),
        ("it/s, higher is better", ("it/s", "higher")),
        ("Bytes", ("bytes", "lower")),
        ("MiB", ("MiB", "lower")),
        ("ms", ("ms", "lower")),
        ("req/s", ("req/s", None)),
        ("unit", ("unit", None)),
        ("", ("", None)),
    ],
)
def test_a_unit_tells_which_way_is_better(unit, means):
    assert read_unit(unit) == means


def test_a_figure_whose_unit_is_a_cost_is_better_when_it_is_lower(tmp_path):
    said = Benchmark("track_it", attributes={"unit": "Seconds (lower is better)"})
    own = Benchmark("track_own", attributes={"unit": "seconds", "direction": "neither"})
    write_benchmarks(tmp_path, [said, own])
    write_commit(tmp_path, "aaaaaaaa", 1, [(said, [1.0]), (own, [1.0])])
    rows = history.load_history(tmp_path).figures.set_index("series")
    assert tuple(rows.loc["track_it", ["unit", "direction"]]) == ("seconds", "lower")
    assert tuple(rows.loc["track_own", ["unit", "direction"]]) == ("seconds", "neither")
