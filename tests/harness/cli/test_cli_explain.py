"""`gcbench explain` from the outside: what was planted comes first, and mistakes are a sentence."""

import json
import os
import shutil
from pathlib import Path

import msgspec
import pytest
from scratch_repository import Repository, leave_git_alone

from engines.vllm.releases import VLLM
from harness.cli.main import main
from harness.explain.result import ExplainResult, GrowthBody

ROOT = Path(__file__).parents[3]
TINY = ["--num-requests", "32", "--batch-size", "32", "--output-lens", "24"]
MORE = ["--num-requests", "64", "--batch-size", "64", "--output-lens", "40"]
ENGINE = "engines/builtin/engine.py"
STEP = "        clock, stamps = self.clock, self.phase_stamps\n"


OFTEN = ["--gc", "threshold:500/10/10"]  # by default 3.13 lets 2,000 objects come first
PLANTED = f"{STEP}        self.planted = [{{i: self}} for i in range(256)]\n"


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    leave_git_alone(monkeypatch, tmp_path)


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """An empty cache and no index."""
    monkeypatch.setenv("GCBENCH_CACHE", str(tmp_path / "cache"))
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")


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
    exports = [f"--export={name}={path}" for name, path in files.items() if name != "json"]
    wanted = ["--json", files["json"], *exports]
    status, out, err = explain("--repo", str(made.root), "--against", base, *wanted)
    assert (status, err) == (0, "")
    assert "What changed most in bytecodes: " in out
    result = json.loads(Path(files["json"]).read_text())
    assert result["schema"] == "gcbench.result/1"
    result = result["body"]
    changed = [each for each in result["lines"] if each["bytecodes"]]
    assert {each["function"] for each in changed} == {"Engine.step"}
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
    costs = json.loads((tmp_path / "json").read_text())["body"]["side"]["costs"]
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


@pytest.mark.slow
def test_the_line_whose_objects_make_the_collector_run_is_the_first(explain, tmp_path):
    engines = tmp_path / "repo" / "engines"
    shutil.copytree(ROOT / "engines", engines, ignore=shutil.ignore_patterns("__pycache__"))
    file = engines / "builtin" / "engine.py"
    file.write_text(file.read_text().replace(STEP, PLANTED))
    (line,) = (i for i, text in enumerate(file.read_text().splitlines(), 1) if "planted" in text)
    planted = ["--by", "collections", *MORE, *OFTEN, "--release", str(tmp_path / "repo")]
    status, out, err = explain(*planted, "--json", str(tmp_path / "json"), "--rows", "1")
    assert (status, err) == (0, "")
    assert f"Without those of engines/builtin/engine.py:{line} it would run about " in out
    assert "self.planted = [{i: self}" in out
    assert "What another type in their place would touch" in out
    left = f"▲ 257 objects of engines/builtin/engine.py:{line} were still there after the last step"
    assert left in " ".join(out.split())
    result = json.loads((tmp_path / "json").read_text())
    (stored,) = (tmp_path / "runs").glob("*/result.json")
    assert json.loads(stored.read_text()) == result
    body = result["body"]
    assert body["kind"] == "sites"
    assert body["prices"][0]["made"] == [["engines/builtin/engine.py", line]]
    assert sum(each["share"] for each in body["found"]["sites"]) == pytest.approx(1)
    again = explain(*planted, "--json", "-", "--quiet")
    repeated = json.loads(again[1])["body"]["found"]
    for found in (repeated, body["found"]):
        for each in found["sites"]:
            del each["pause_share"]  # a time
    assert repeated == body["found"]


@pytest.mark.slow
def test_where_nothing_collects_nothing_is_attributed(explain):
    status, out, err = explain("--by", "collections", *MORE, "--gc", "disabled")
    assert (status, out) == (3, "")
    assert err == (
        "gcbench: nothing to explain: this code: the collector did not run once in 40 steps under "
        "--gc disabled; choose another policy, a larger batch or longer outputs\n"
    )


@pytest.mark.slow
def test_along_several_trees_what_was_planted_comes_with_its_tree(explain, tmp_path):
    trees = [tmp_path / name for name in ("first", "second")]
    for tree in trees:
        shutil.copytree(
            ROOT / "engines", tree / "engines", ignore=shutil.ignore_patterns("__pycache__")
        )
    file = trees[1] / ENGINE
    file.write_text(file.read_text().replace(STEP, f"{STEP}        [{{0: i}} for i in range(3)]\n"))
    wanted = ",".join(map(str, trees))
    files = {name: tmp_path / f"growth.{name}" for name in ("md", "svg")}
    written = ["--export", f"markdown={files['md']}", "--image", str(files["svg"])]
    status, out, err = explain("--release", wanted, "--json", "-", *written)
    assert (status, err) == (0, "")
    body = msgspec.json.decode(out, type=ExplainResult).body
    assert isinstance(body, GrowthBody)
    first, second = body.versions
    assert (first.label, second.label) == tuple(map(str, trees))
    assert sum(each.bytecodes for each in body.arrivals) == pytest.approx(
        second.bytecodes - first.bytecodes
    )
    dearer = {each.function.partition(".<")[0] for each in body.arrivals if each.bytecodes}
    assert dearer == {"Engine.step"}
    assert "Engine.step" in files["md"].read_text()
    assert files["svg"].read_text().startswith("<?xml")


PLANTED_IN_VLLM = """

_inner_schedule = Scheduler.schedule


def planted_schedule(self, *arguments):
    for _ in range(100):
        pass
    return _inner_schedule(self, *arguments)


Scheduler.schedule = planted_schedule
"""


@pytest.mark.slow
def test_what_a_tree_has_more_than_a_release_is_the_first_row(pinned_vllm, explain, tmp_path):
    tree, table = tmp_path / "tree", tmp_path / "table.md"
    shutil.copytree(VLLM.layer(pinned_vllm) / "vllm", tree / "vllm")
    with (tree / "vllm" / "v1" / "core" / "sched" / "scheduler.py").open("a") as file:
        file.write(PLANTED_IN_VLLM)
    wanted = ["--engine", "vllm-hostpath", "--release", f"{pinned_vllm},{tree},0.9.1"]
    wanted += ["--trial-timeout", "1200"]
    status, out, err = explain(*wanted, "--json", "-", "--export", f"markdown={table}")
    assert status == 0, err
    assert "left out 0.9.1" in err
    body = msgspec.json.decode(out, type=ExplainResult).body
    assert isinstance(body, GrowthBody)
    assert [each.partition(":")[0] for each in body.left_out] == ["0.9.1"]
    release, planted = body.versions
    assert (release.label, planted.label) == (pinned_vllm, "tree")
    (new,) = [each for each in body.arrivals if each.kind == "new"]
    assert new.function == "planted_schedule"
    assert sum(each.bytecodes for each in body.arrivals) == pytest.approx(
        planted.bytecodes - release.bytecodes
    )
    rows = [line for line in table.read_text().splitlines() if line.startswith("|")]
    assert any("planted_schedule" in row and "tree (new) +" in row for row in rows)


HOSTPATH = ["--engine", "vllm-hostpath", "--release"]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([*HOSTPATH, "0.9.1"], 3, ["left out 0.9.1", "too old", "0.10.2"]),
        ([*HOSTPATH, "0.9.1,newest"], 3, ["left out 0.9.1", "left out newest"]),
        ([*HOSTPATH, "all"], 2, ["cannot be read", "network"]),
        ([*HOSTPATH, "0.11.2", "--last-patches"], 2, ["--last-patches", "0.10.2..0.12.0"]),
    ],
)
def test_a_release_that_cannot_be_had_is_a_sentence(offline, explain, arguments, status, words):
    found, out, err = explain(*arguments)
    assert (found, out) == (status, ""), err
    for word in words:
        assert word in " ".join(err.split())
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--repo", "nowhere", "--against", "x"], "--repo nowhere: there is no such folder"),
        (["--against", "no-such-commit"], "has no commit 'no-such-commit'"),
        (["--gc", "default,freeze"], "one value an axis"),
        (["--by", "bites"], "'bites' is not one of"),
        (["--rows", "0"], "--rows"),
        (["--export", "sarif=."], "--export sarif=."),
        (["--image", "a.gif"], ".png or .svg"),
        (["--image", "a.svg"], "--image: draws several releases"),
        (["--last-patches"], "--last-patches: only of a range"),
        (["--by", "collections", "--against", "x"], "--against: has no meaning with --by coll"),
        (["--by", "collections", "--every", "2"], "--every: has no meaning with --by coll"),
        (["--by", "collections", "--export", "sarif=a"], "--export sarif: is of one version"),
        (["--by", "collections", "--release", "a,b"], "--release: --by collections looks at one"),
        (["--release", "a,b", "--against", "c"], "--against: is for one version or two"),
        (["--release", "a,b", "--commit", "c"], "--commit: is for one version or two"),
        (["--release", "a,b", "--export", "collapsed=c"], "--export collapsed: is of one version"),
        (["--release", "a,b", "--batch-size", "8,16"], "one value an axis"),
    ],
)
def test_a_mistake_is_a_sentence_and_leaves_nothing(explain, tmp_path, arguments, says):
    status, out, err = explain(*arguments)
    assert (status, out) == (2, "")
    assert says in err
    assert "Traceback" not in err
    runs = tmp_path / "runs"
    assert not runs.exists() or not list(runs.iterdir())


def test_a_release_that_is_neither_a_tree_nor_a_commit(explain):
    status, out, err = explain("--release", "nowhere")
    assert (status, out) == (3, "")
    assert "nowhere is no folder, and " in " ".join(err.split())
