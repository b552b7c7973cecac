"""Many machines from the command line: shards and their merge, and refusals in one sentence."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from small import answer

from harness.cli.main import main
from harness.experiment.executor import Executor

TINY = [
    "compare",
    "--device",
    "null",
    "--num-requests",
    "2",
    "--output-lens",
    "3",
    "--batch-size",
    "2",
    "--representation",
    "list_of_lists",
    "--delivery",
    "per_request",
    "--gc",
    "default,disabled",
    "--heap-objects",
    "0",
    "--no-counting",
    "--rounds",
    "7",
]


class Machine(Executor):
    """A candidate that is slower by a fifth."""

    def batch_size(self, cells):
        return 2

    def run(self, trials):
        for trial in trials:
            slow = 1.2 if trial.cell.gc == "disabled" else 1.0
            wobble = 1 + trial.seed % 997 / 1e5
            yield answer(trial, {"host_time_per_step": 1e-3 * slow * wobble})


@pytest.fixture
def gcbench(capsys, tmp_path):
    def run(*words):
        status = main([*words, "--output", str(tmp_path)], lambda timeout: Machine())
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_shards_are_merged_into_what_one_run_says(gcbench, tmp_path):
    status, out, _ = gcbench(*TINY, "--json", "-", "--quiet")
    assert status == 0
    alone = json.loads(out)
    shards = []
    for number in (1, 2):
        status, out, _ = gcbench(*TINY, "--shard", f"{number}/2", "--json", "-", "--quiet")
        assert status == 0
        shard = json.loads(out)
        assert f"Only the blocks of shard {number} of 2" in "".join(shard["notes"])
        assert not [each for each in shard["comparisons"] if each["verdict"] != "inconclusive"]
        shards.append(shard["name"])
    status, out, _ = gcbench("report", "--merge", *shards, "--json", "-")
    assert status == 0
    merged = json.loads(out)
    (ours,), (theirs,) = merged["comparisons"], alone["comparisons"]
    assert ours["ratio"] == theirs["ratio"]
    assert ours["verdict"] == theirs["verdict"] == "worse"
    assert merged["nodes"] == {"shard 1 of 2": 4, "shard 2 of 2": 3}
    assert merged["workloads"] == alone["workloads"]
    status, out, _ = gcbench("report", merged["name"], "--details")
    assert "blocks of shard 1 of 2 4, shard 2 of 2 3" in out.replace("\n", " ")


def test_a_merge_of_too_few_shards_says_so_and_is_not_finished(gcbench):
    _, out, _ = gcbench(*TINY, "--shard", "1/2", "--json", "-", "--quiet")
    name = json.loads(out)["name"]
    status, out, _ = gcbench("report", "--merge", name, "--json", "-")
    assert status == 3
    assert "6 trials are missing" in "".join(json.loads(out)["notes"])
    status, _, err = gcbench("report", "--merge", name, name)
    assert (status, err) == (2, "gcbench: a run is given twice; give each shard once\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([*TINY, "--shard", "3/2"], "--shard 3/2: must be I/N"),
        ([*TINY, "--shard", "1/2", "--until-precise", "1"], "leave out --until-precise"),
        (
            ["compare", "--experiment", "wire", "--shard", "1/2"],
            "several grids and --shard is of one",
        ),
        ([*TINY, "--leave-out", "a"], "give --cluster, too"),
        ([*TINY, "--like", "a"], "give --cluster, too"),
        ([*TINY, "--cluster", "ray://somewhere:10001"], "Ray Client keeps no order"),
        (["report", "--merge", "nothing"], "there is no run 'nothing'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(gcbench, tmp_path, words, sentence):
    pytest.importorskip("ray")
    status, _, err = gcbench(*words)
    assert status in (2, 3)
    assert sentence in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("*/trials"))


def test_without_ray_it_says_what_to_install():
    root = Path(__file__).parents[3]
    code = (
        "import sys; sys.modules['ray'] = None; from harness.cli.main import main; "
        "sys.exit(main(['compare', '--cluster', 'local']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"gcbench: {sys.executable} has no ray, which --cluster needs; run {sys.executable} -m pip "
        "install 'gcbench[cluster]'\n"
    )
