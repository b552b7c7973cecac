"""Summaries and trials of somebody who means no good: a line each, and the site is made."""

import json
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hostile_values import spoilt
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from test_site import PUBLISHED, raw_trial

from harness.cli.main import main
from harness.files import write_rows

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
        assert main(["dashboard", str(results), "--output", str(spoiling / "site")]) == 0
        assert all(line.startswith("gcbench: ") for line in capsys.readouterr().err.splitlines())
    finally:
        path.write_bytes(before)


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
    assert main(["dashboard", str(results), "--output", str(tmp_path / "site")]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == (column.dtype.kind == "f")
