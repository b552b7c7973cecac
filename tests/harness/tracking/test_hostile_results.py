"""Results of somebody who means no good: lines on standard error, and the rest is shown."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asv_writer import Benchmark, write_benchmarks, write_commit
from examples import examples
from hostile_values import ESCAPE, NO_FILES, spoilt
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from harness.cli.main import main
from harness.files import ROWS_SCHEMA, StoreError, read_rows
from harness.format import printable
from harness.tracking.asv.json_files import read_json
from harness.tracking.history import load_history

SPOILT = (
    "results/benchmarks.json",
    "results/box/machine.json",
    "results/box/aaaaaaaa-py3.11.json",
    "asv.conf.json",
)


def project(root: Path, machine: str = "box", commits: int = 4) -> Path:
    """Results of two benchmarks at some commits, and the configuration that they are of."""
    results = root / "results"
    first = Benchmark(
        "suite.track_a",
        {"gc": ["x", "y"], "n": [1, 2]},
        "1",
        {"direction": "lower", "kind": "timing", "noise_floor": 0.1},
    )
    second = Benchmark("suite.time_b", version="2")
    write_benchmarks(results, [first, second])
    for day in range(commits):
        values = [1.0 + day, 2.0, None, 4.0]
        write_commit(
            results,
            "abcdefgh"[day] * 40,
            20_000 + day,
            [(first, values), (second, [0.5])],
            machine=machine,
            stats_ci_99_a=[0.5] * 4,
            stats_ci_99_b=[1.5] * 4,
            samples=[[1.0, 2.0]] * 4,
        )
    config = {"version": 1, "repo": ".", "results_dir": "results", "branches": ["main"]}
    (root / "asv.conf.json").write_text(json.dumps(config))
    return results


def said(capsys) -> list[str]:
    """The lines of standard error, each a sentence of ours that no terminal obeys."""
    found = capsys.readouterr()
    for stream in (found.out, found.err):
        assert all(printable(line) == line for line in stream.split("\n"))
    lines = found.err.splitlines()
    assert all(line.startswith("gcbench: ") and len(line) < 2100 for line in lines)
    return lines


@pytest.fixture(scope="module")
def spoiling(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("spoiling")
    project(root)
    return root


@given(st.data())
@examples(100, unchecked=[HealthCheck.function_scoped_fixture])
def test_whatever_asvs_files_hold_the_history_is_read(spoiling, capsys, data):
    path = spoiling / data.draw(st.sampled_from(SPOILT))
    before = path.read_bytes()
    named = spoiling / ("asv.conf.json" if path.name == "asv.conf.json" else "results")
    try:
        path.write_text(json.dumps(data.draw(spoilt([json.loads(before)]))))
        assert main(["report", str(named)]) in (0, 2, 3)
        said(capsys)
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("make", NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file_is_a_line_and_the_rest_is_shown(tmp_path, capsys, make):
    root = tmp_path / "all"
    results = project(root)
    bad = [
        results / "benchmarks.json",
        results / "box" / "machine.json",
        results / "box" / "aaaaaaaa-py3.11.json",
        root / "published" / "one.json",
        root / "summary.json",
        root / "runs" / "x" / "trials" / "001.json",
        root / "triage.toml",
    ]
    for path in bad:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        make(path)
    triage = bad.pop()
    assert main(["report", str(root)]) in (0, 2, 3)
    lines = said(capsys)
    if triage.is_symlink() or triage.exists():
        assert str(triage) in lines[-1]
        triage.rmdir() if triage.is_dir() else triage.unlink()
    assert main(["dashboard", str(root), "--output", str(tmp_path / "site")]) == 0
    lines = said(capsys)
    for path in bad:
        # What lies beside asv's results is a summary only where it says so.
        if (path.is_symlink() or path.exists()) and path.name != "summary.json":
            assert sum(str(path) in line for line in lines) == 1, path


@pytest.mark.slow
@pytest.mark.parametrize(
    "params",
    [[["1"] * 10] * 30, [["1"]] * 50_000, [["1", "2"]] * 50_000],
    ids=["product", "parameters", "both"],
)
def test_more_points_than_anybody_has_measured_are_a_sentence(tmp_path, params):
    results = project(tmp_path)
    defined, stored = results / "benchmarks.json", results / "box" / "aaaaaaaa-py3.11.json"
    for path, place in ((defined, ("suite.track_a", "params")), (stored, ("suite.track_a", 1))):
        content = json.loads(path.read_text())
        content.get("results", content)[place[0]][place[1]] = params
        path.write_text(json.dumps(content))
    found = load_history(results)
    assert [problem for problem in found.problems if "more points" in problem] == [
        f"{stored}: suite.track_a has more points of its parameters than are read, 100,000 in a "
        "file and 32 parameters; left out"
    ]
    assert set(found.figures["benchmark"]) == {"suite.track_a", "suite.time_b"}


@pytest.mark.slow
def test_a_benchmark_without_values_has_failed_at_each_point_up_to_a_bound(tmp_path):
    results = project(tmp_path, commits=1)
    path = results / "box" / "aaaaaaaa-py3.11.json"
    content = json.loads(path.read_text())
    values = [str(number) for number in range(300)]
    content["results"] |= {f"suite.track_{name}": [None, [values, values]] for name in "cd"}
    path.write_text(json.dumps(content))
    found = load_history(results)
    assert (found.figures["benchmark"] == "suite.track_c").sum() == 90_000
    assert (found.figures["benchmark"] == "suite.track_d").sum() == 0
    assert "suite.track_d has more points" in found.problems[0]


@pytest.mark.parametrize(
    "text",
    [
        '"' + '\\"' * 2_000_000,
        '{"version": 1, "a": "' + '\\"' * 2_000_000 + "\n}",
        "/*" * 2_000_000,
        '"\\',
    ],
    ids=["string", "value", "comment", "escape"],
)
def test_what_has_no_end_in_a_configuration_is_looked_at_once(tmp_path, text):
    path = tmp_path / "asv.conf.json"
    path.write_text(text)
    with pytest.raises(StoreError, match="cut short or not JSON"):
        read_json(path, 1, comments=True)


def test_json_that_is_deeper_than_a_stack_is_a_line(tmp_path, capsys):
    results = project(tmp_path)
    path = results / "benchmarks.json"
    content = json.loads(path.read_text())
    content["suite.track_a"]["direction"] = "DEEP"
    for depth in (500, 900, 10_000):
        path.write_text(json.dumps(content).replace('"DEEP"', "[" * depth + "]" * depth))
        assert main(["report", str(results), "--json", str(tmp_path / "h.json")]) == 0
        assert str(path) in said(capsys)[0]


def test_no_terminal_obeys_a_name(tmp_path, capsys):
    machine = f"box{ESCAPE}"
    results = project(tmp_path, machine=machine)
    (results / machine / f"cafecafe-{ESCAPE}.json").write_text("{")
    assert main(["report", str(results), "--json", str(tmp_path / "h.json")]) == 0
    (line,) = (line for line in said(capsys) if "cafecafe" in line)
    assert r"\x1b]0;mine\x07\x1b[2J\x9b31m\u202e" in line
    assert main(["dashboard", str(results), "--output", str(tmp_path / "site")]) == 0
    assert "cafecafe" in "".join(said(capsys))


def test_many_keys_that_nobody_knows_are_a_few_sentences(tmp_path, capsys):
    project(tmp_path)
    path = tmp_path / "asv.conf.json"
    content = json.loads(path.read_text()) | {f"key{number}": 1 for number in range(10_000)}
    path.write_text(json.dumps(content))
    assert main(["report", str(path), "--json", str(tmp_path / "h.json")]) == 0
    assert sum("asv 0.6.6" in line for line in said(capsys)) == 21


COLUMNS = {
    "text": pa.array(["x"]),
    "none": pa.nulls(1),
    "a missing value": pa.array([None], pa.int64()),
    "list": pa.array([[1]]),
    "record": pa.array([{"a": 1}]),
    "time": pa.array([1], pa.timestamp("ns")),
    "decimal": pa.array([1], pa.decimal128(5)),
    "dictionary": pa.array(["x"]).dictionary_encode(),
    "bytes": pa.array([b"x"]),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_rows_are_numbers(tmp_path, column):
    path = tmp_path / "rows.parquet"
    table = pa.table({"a": pa.array([1]), "b": column})
    pq.write_table(table.replace_schema_metadata({"schema": ROWS_SCHEMA}), path)
    with pytest.raises(StoreError, match=r"rows\.parquet (has|lacks values in) column 'b'"):
        read_rows(path)


def test_rows_that_would_unpack_to_gigabytes_are_refused(tmp_path):
    path = tmp_path / "rows.parquet"
    ones = pa.array([1] * 1_000_000)
    schema = pa.schema(
        [(f"c{number}", pa.int64()) for number in range(11)], metadata={"schema": ROWS_SCHEMA}
    )
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(10):
            writer.write_table(pa.Table.from_arrays([ones] * 11, schema=schema))
    assert path.stat().st_size < 1_000_000
    with pytest.raises(StoreError, match="holds 110,000,000 values"):
        read_rows(path)


@pytest.mark.parametrize("make", NO_FILES.values(), ids=NO_FILES)
def test_rows_that_are_no_file_are_a_sentence(tmp_path, make):
    path = tmp_path / "rows.parquet"
    make(path)
    with pytest.raises(StoreError, match="cannot be read"):
        read_rows(path)


def test_rows_with_a_schema_that_is_no_text_are_a_sentence(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({"schema": b"\xff"}), path)
    with pytest.raises(StoreError, match="has schema"):
        read_rows(path)
