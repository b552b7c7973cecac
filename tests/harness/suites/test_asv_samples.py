"""What asv makes of our figures: samples are not in its documentation, so asv itself is asked."""

import json
from pathlib import Path

import pytest
from asv_runs import Project

ROOT = Path(__file__).parents[3]
SUITE = """
import json
import math
from pathlib import Path

from harness.suites.figures import asv_figure

VALUES = json.loads((Path(__file__).parent / "values.json").read_text())


def track_samples(name):
    return asv_figure(VALUES[name])


track_samples.params = ["slower", "as it was", "overlapping", "around 0"]
track_samples.version = "1"


def track_number(name):
    return VALUES[name] if VALUES[name] is not None else math.nan


track_number.params = ["a count", "none"]
track_number.version = "1"
"""
BEFORE = {
    "slower": [1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06],
    "as it was": [1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06],
    "overlapping": [1.0, 1.0, 1.0, 1.0, 1.8, 1.8, 1.8],
    "around 0": [-0.02, -0.01, -0.01, 0.0, 0.01, 0.01, 0.02],
    "a count": 100,
    "none": None,
}
AFTER = BEFORE | {
    "slower": [1.2, 1.21, 1.22, 1.23, 1.24, 1.25, 1.26],
    "overlapping": [1.0, 1.0, 1.0, 1.8, 1.8, 1.8, 1.8],
    "a count": 130,
}
CONFIG = {
    "version": 1,
    "project": "toy",
    "repo": ".",
    "branches": ["HEAD"],
    "environment_type": "existing",
}


@pytest.mark.slow
def test_asv_reads_samples_numbers_and_figures_that_are_none(tmp_path: Path) -> None:
    project = Project(tmp_path / "toy")
    suite = project.folder / "benchmarks"
    suite.mkdir()
    (project.folder / "asv.conf.json").write_text(json.dumps(CONFIG))
    (suite / "__init__.py").touch()
    (suite / "toy.py").write_text(SUITE)
    project.asv("machine", "--yes")
    commits = []
    for values in (BEFORE, AFTER):
        (suite / "values.json").write_text(json.dumps(values))
        commits.append(project.commit())
        said = project.measure(commits[-1], ASV_PYTHONPATH=str(ROOT))
        assert "failed" not in said

    rows = {
        row.split("|")[5].strip(): [cell.strip() for cell in row.split("|")[1:5]]
        for row in project.asv("compare", *commits).splitlines()
        if "toy.track" in row
    }
    marks = {name: change for name, (change, *_) in rows.items()}
    assert marks == {
        "toy.track_samples('slower')": "+",
        "toy.track_samples('as it was')": "",
        "toy.track_samples('overlapping')": "",  # by the U test; as numbers it would be "+"
        "toy.track_samples('around 0')": "",
        "toy.track_number('a count')": "+",
        "toy.track_number('none')": "",
    }
    assert rows["toy.track_samples('slower')"][1:] == ["1.03±0.015", "1.23±0.015", "1.19"]
    assert rows["toy.track_samples('overlapping')"][3].startswith("~")
    assert rows["toy.track_number('none')"][1:3] == ["n/a", "n/a"]

    shown = project.asv("show", commits[0])
    assert "1.03±0.015" in shown
    project.asv("publish")
    graphs = (project.folder / "html" / "graphs").rglob("toy.track_samples.json")
    (graph,) = (path for path in graphs if "summary" not in path.parts)
    points = json.loads(graph.read_text())
    assert [values[0] for _, values in points] == [1.03, 1.23]
