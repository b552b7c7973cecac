"""`gcbench advise --predict` from the outside: where rules decide it agrees, else it says why."""

import json
import shutil
from pathlib import Path

import pytest
from scratch_repository import leave_git_alone

from harness.cli.main import main

ROOT = Path(__file__).parents[3]
TINY = ["--num-requests", "128", "--batch-size", "64", "--output-lens", "40"]
STEP = "        clock, stamps = self.clock, self.phase_stamps\n"
BY_HAND = f"{STEP}        __import__('gc').collect(0)\n"


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    leave_git_alone(monkeypatch, tmp_path)


@pytest.fixture
def predict(tmp_path, capsys):
    """Call the command; status, what it printed, what it said of errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(
            ["advise", "--predict", *TINY, "--output", str(tmp_path / "runs"), *arguments]
        )
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


@pytest.mark.slow
@pytest.mark.landing
def test_predictions_of_several_policies_come_true(predict, tmp_path):
    policies = "threshold:150/3/10,freeze+threshold:60/10/10"
    status, out, err = predict("--gc", policies, "--quiet", "--json", "-")
    assert (status, err) == (0, "")
    result = json.loads(out)
    assert result["schema"] == "gcbench.result/1"
    assert [each["label"] for each in result["cadences"]] == policies.split(",")
    for each in result["cadences"]:
        assert each["observed"][0] > 20
        for predicted, observed in zip(each["predicted"], each["observed"], strict=True):
            assert abs(predicted - observed) <= max(1, 0.03 * observed)
    (stored,) = (tmp_path / "runs").glob("*/result.json")
    assert json.loads(stored.read_text()) == result


@pytest.mark.slow
def test_a_collector_that_is_called_by_hand_is_said(predict, tmp_path):
    engines = tmp_path / "repo" / "engines"
    shutil.copytree(ROOT / "engines", engines, ignore=shutil.ignore_patterns("__pycache__"))
    file = engines / "builtin" / "engine.py"
    assert STEP in file.read_text()
    file.write_text(file.read_text().replace(STEP, BY_HAND))
    status, out, _ = predict("--release", str(tmp_path / "repo"), "--gc", "default")
    assert status == 3
    assert "something calls the collector by hand" in " ".join(out.split())


@pytest.mark.slow
def test_where_nothing_can_be_predicted_nothing_is_measured(predict):
    status, out, _ = predict("--gc", "disabled", "--quiet", "--json", "-")
    result = json.loads(out)
    assert (status, result["cadences"]) == (3, [])
    assert result["left_out"] == [
        "disabled: the collector does not run by itself under --gc disabled"
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--release", "nowhere"], "no engines/builtin there"),
        (["--gc", "defualt"], "did you mean default"),
        (["--rounds", "7"], "--rounds: says nothing with --predict"),
        (["--step-ms", "18"], "--step-ms: says nothing with --predict"),
    ],
)
def test_a_mistake_is_a_sentence_and_leaves_nothing(predict, tmp_path, arguments, says):
    status, out, err = predict(*arguments)
    assert (status, out) == (2, "")
    assert says in err
    runs = tmp_path / "runs"
    assert not runs.exists() or not list(runs.iterdir())
