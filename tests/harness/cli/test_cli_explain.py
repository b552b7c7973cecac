"""`gcbench explain` from the outside: what was planted comes first, and mistakes are a sentence."""

import json
import shutil
from pathlib import Path

import pytest
from scratch_repository import Repository, leave_git_alone

from harness.cli.main import main

ROOT = Path(__file__).parents[3]
TINY = ["--num-requests", "32", "--batch-size", "32", "--output-lens", "24"]
ENGINE = "engines/builtin/engine.py"
STEP = "        clock, stamps = self.clock, self.phase_stamps\n"


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    leave_git_alone(monkeypatch, tmp_path)
    monkeypatch.setenv("GCBENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def explain(tmp_path, capsys):
    """Call the command; status, what it printed, what it said of errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(["explain", *TINY, "--output", str(tmp_path / "runs"), *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


@pytest.mark.slow
@pytest.mark.landing
def test_what_a_commit_planted_in_the_step_is_the_first_line(explain, tmp_path):
    made = Repository(tmp_path / "repo")
    shutil.copytree(
        ROOT / "engines", made.root / "engines", ignore=shutil.ignore_patterns("__pycache__")
    )
    base = made.commit("engines")
    file = made.root / ENGINE
    file.write_text(file.read_text().replace(STEP, f"{STEP}        [{{0: i}} for i in range(3)]\n"))
    files = {name: str(tmp_path / name) for name in ("json", "speedscope", "collapsed", "sarif")}
    exports = [part for name, path in files.items() for part in (f"--{name}", path)]
    status, out, err = explain("--repo", str(made.root), "--against", base, *exports)
    assert (status, err) == (0, "")
    assert "What changed most in bytecodes: " in out
    result = json.loads(Path(files["json"]).read_text())
    assert result["schema"] == "gcbench.explain/1"
    changed = [each for each in result["lines"] if each["bytecodes"]]
    # From 3.12 on the comprehension is a part of the function that it stands in.
    names = {function[2] for function in result["side"]["costs"]["functions"]}
    planted = {"Engine.step", "Engine.step.<locals>.<listcomp>"} & names
    assert {each["function"] for each in changed} == planted
    for side in ("side", "against"):
        costs, metrics = result[side]["costs"], result[side]["metrics"]
        bytecodes = sum(function[5] for function in costs["functions"])
        assert bytecodes / costs["num_rows"] == metrics["bytecodes_per_request_step"]
        allocations = sum(function[6] for function in costs["functions"])
        assert allocations / costs["num_steps"] == metrics["tracked_allocations_per_step"]
    assert len(json.loads(Path(files["speedscope"]).read_text())["profiles"]) == 4
    found = json.loads(Path(files["sarif"]).read_text())["runs"][0]["results"]
    assert "Engine.step" in found[0]["message"]["text"]
    assert Path(files["collapsed"]).read_text()


@pytest.mark.slow
def test_one_step_in_many_of_the_whole_run_says_how_sure_it_is(explain, tmp_path):
    status, out, err = explain("--every", "4", "--json", str(tmp_path / "json"))
    assert (status, err) == (0, "")
    assert "One step in 4 was traced; bytecodes are right within ±" in out
    costs = json.loads((tmp_path / "json").read_text())["side"]["costs"]
    assert costs["num_steps"] == 6
    assert f"6 steps, one in 4, {sum(rows for rows, _ in costs['samples'])} outputs" in out


@pytest.mark.slow
def test_a_run_of_fewer_steps_than_every_is_a_sentence(explain):
    status, _, err = explain("--every", "100000")
    assert status == 3
    assert err.startswith(
        "gcbench: nothing to explain: this code: no step was traced; give a smaller --every"
    )


@pytest.mark.slow
def test_no_step_at_full_batch_is_a_sentence(explain):
    status, _, err = explain("--output-lens", "1")
    assert status == 3
    assert err.startswith("gcbench: nothing to explain: this code: no step was followed by another")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--repo", "nowhere", "--against", "x"], "--repo nowhere: there is no such folder"),
        (["--against", "no-such-commit"], "has no commit 'no-such-commit'"),
        (["--release", "nowhere"], "no engines/builtin there"),
        (["--gc", "default,freeze"], "one value an axis"),
        (["--by", "bites"], "'bites' is not one of"),
        (["--rows", "0"], "--rows"),
        (["--sarif", "."], "--sarif ."),
    ],
)
def test_a_mistake_is_a_sentence_and_leaves_nothing(explain, tmp_path, arguments, says):
    status, out, err = explain(*arguments)
    assert (status, out) == (2, "")
    assert says in err
    assert "Traceback" not in err
    runs = tmp_path / "runs"
    assert not runs.exists() or not list(runs.iterdir())
