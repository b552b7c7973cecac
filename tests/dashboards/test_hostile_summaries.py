"""Summaries and trials of somebody who means no good: a line each, and the site is made."""

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hostile_values import spoilt
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from test_site import PUBLISHED, raw_trial

from harness.claims.reproduction import of_result
from harness.claims.stored import read_recorded
from harness.cli.main import main
from harness.files import StoreError, write_rows

SUMMARIES = ("story-26368-batch-1024.json", "vllm-releases.json")


def _short(name: str) -> dict:
    """A published summary of four cells."""
    summary = json.loads((PUBLISHED / name).read_text())
    summary["cells"] = summary["cells"][:4]
    ids = {cell["id"] for cell in summary["cells"]}
    summary["comparisons"] = [
        each for each in summary["comparisons"] if {each["candidate"], each["baseline"]} <= ids
    ]
    return summary


@pytest.fixture(scope="module")
def spoiling(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("spoiling")
    raw_trial(root / "results")
    (root / "results" / "published").mkdir()
    for name in SUMMARIES:
        (root / "results" / "published" / name).write_text(json.dumps(_short(name)))
    return root


@given(st.data())
@examples(60, unchecked=[HealthCheck.function_scoped_fixture])
def test_whatever_summaries_and_trials_hold_the_site_is_made(spoiling, capsys, data):
    results = spoiling / "results"
    paths = [*sorted(results.rglob("published/*.json")), *results.rglob("trials/*.json")]
    path = data.draw(st.sampled_from(paths))
    before = path.read_bytes()
    try:
        path.write_text(json.dumps(data.draw(spoilt([json.loads(before)]))))
        assert main(["dashboard", "build", str(results), "--output", str(spoiling / "site")]) == 0
        assert all(line.startswith("gcbench: ") for line in capsys.readouterr().err.splitlines())
    finally:
        path.write_bytes(before)


@given(spoilt([_short(SUMMARIES[0])]))
@examples(300)
def test_whatever_a_result_holds_there_are_questions_or_a_sentence(tmp_path_factory, summary):
    path = tmp_path_factory.getbasetemp() / "result.json"
    path.write_text(json.dumps(summary))
    with suppress(StoreError, ValueError):
        recorded = read_recorded(path)
        of_result(recorded.command, recorded.results)


@pytest.mark.parametrize(
    ("command", "says"), [("gcbench compare '", "only those of"), ("rm -rf", "only those of")]
)
def test_a_result_without_a_command_of_ours_is_one_sentence(tmp_path, capsys, command, says):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(_short(SUMMARIES[0]) | {"command": command}))
    assert main(["reproduce", str(path)]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_a_comparison_of_no_cell_is_one_sentence(tmp_path, capsys):
    path = tmp_path / "result.json"
    summary = _short(SUMMARIES[0])
    summary["comparisons"][0] |= {"candidate": "nobody", "verdict": "better"}
    path.write_text(json.dumps(summary))
    assert main(["reproduce", str(path)]) == 2
    said = capsys.readouterr().err
    assert f"{path}: 'nobody' is compared and is none of its cells" in said


ENDS = np.iinfo(np.int64)
COLUMNS = {
    "floats": np.array([0.0, np.nan, np.inf]),
    "the ends of integers": np.array([ENDS.min, ENDS.max, 0]),
    "bytes": np.array([127, -128, 0], np.int8),
    "without a sign": np.array([2**64 - 1, 0, 1], np.uint64),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_whatever_numbers_the_rows_hold_the_site_is_made(tmp_path, capsys, column):
    results = tmp_path / "results"
    store = raw_trial(results)
    for table in ("steps", "collections"):
        path = next(store.folder.glob(f"rows/*-{table}.parquet"))
        names = ("start", "schedule", "launch", "wait", "handoff", "process", "num_rows")
        if table == "collections":
            names = ("generation", "start_ns", "duration_ns", "process")
        write_rows(path, dict.fromkeys(names, column))
    assert main(["dashboard", "build", str(results), "--output", str(tmp_path / "site")]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == (column.dtype.kind == "f")
