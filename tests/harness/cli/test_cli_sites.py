"""`gcbench sites` from the outside: planted lines are named, and mistakes are a sentence."""

import json
import shutil
from pathlib import Path

import pytest
from scratch_repository import leave_git_alone

from harness.cli.main import main

ROOT = Path(__file__).parents[3]
TINY = ["--num-requests", "64", "--batch-size", "64", "--output-lens", "40"]
OFTEN = ["--gc", "threshold:500/10/10"]  # by default 3.13 lets 2,000 objects come first
STEP = "        clock, stamps = self.clock, self.phase_stamps\n"
PLANTED = f"{STEP}        self.planted = [{{i: self}} for i in range(256)]\n"


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    leave_git_alone(monkeypatch, tmp_path)


@pytest.fixture
def sites(tmp_path, capsys):
    """Call the command; status, what it printed, what it said of errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(["sites", *TINY, "--output", str(tmp_path / "runs"), *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


@pytest.mark.slow
def test_the_line_that_was_planted_is_the_first(sites, tmp_path):
    engines = tmp_path / "repo" / "engines"
    shutil.copytree(ROOT / "engines", engines, ignore=shutil.ignore_patterns("__pycache__"))
    file = engines / "builtin" / "engine.py"
    file.write_text(file.read_text().replace(STEP, PLANTED))
    (line,) = (i for i, text in enumerate(file.read_text().splitlines(), 1) if "planted" in text)
    planted = ["--release", str(tmp_path / "repo"), *OFTEN]
    status, out, err = sites(*planted, "--json", str(tmp_path / "json"), "--rows", "1")
    assert (status, err) == (0, "")
    assert f"Without those of engines/builtin/engine.py:{line} it would run about " in out
    assert "self.planted = [{i: self}" in out
    assert "What another type in their place would touch" in out
    left = f"▲ 257 objects of engines/builtin/engine.py:{line} were still there after the last step"
    assert left in " ".join(out.split())
    result = json.loads((tmp_path / "json").read_text())
    assert result["prices"][0]["made"] == [["engines/builtin/engine.py", line]]
    assert result["schema"] == "gcbench.sites/1"
    assert sum(each["share"] for each in result["found"]["sites"]) == pytest.approx(1)
    again = sites(*planted, "--json", "-", "--quiet")
    repeated = json.loads(again[1])["found"]
    for found in (repeated, result["found"]):
        for each in found["sites"]:
            del each["pause_share"]  # a time
    assert repeated == result["found"]


@pytest.mark.slow
def test_where_nothing_collects_nothing_is_attributed(sites):
    status, out, err = sites("--gc", "disabled")
    assert (status, out) == (3, "")
    assert err == (
        "gcbench: nothing to attribute: the collector did not run once in 40 steps under --gc "
        "disabled; choose another policy, a larger batch or longer outputs\n"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--gc", "default,freeze"], "one value an axis"),
        (["--release", "nowhere"], "no engines/builtin there"),
        (["--rows", "0"], "--rows"),
    ],
)
def test_a_mistake_is_a_sentence_and_leaves_nothing(sites, tmp_path, arguments, says):
    status, out, err = sites(*arguments)
    assert (status, out) == (2, "")
    assert says in err
    runs = tmp_path / "runs"
    assert not runs.exists() or not list(runs.iterdir())
