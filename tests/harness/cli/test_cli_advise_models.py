"""`gcbench advise --models` on a machine whose times are known, and once for real."""

import json
from collections.abc import Iterator

import numpy as np
import pytest
from small import answer

from engines.builtin.device.profile import load_profile
from harness.cli.main import main
from harness.experiment.crossover import model_steps
from harness.experiment.executor import Executor
from harness.trial.spec import Trial, TrialResult
from workloads.schedule import Schedule

TINY = [
    "--batch-size",
    "4,16,64",
    "--heap-objects",
    "0,1000",
    "--output-lens",
    "20",
    "--prompt-lens",
    "8",
]


class Machine(Executor):
    """The host takes ``per_request`` microseconds for each request and policy, and the device what
    it takes; ``hides``: the device hides the host, so that the law does not hold. ``stops_on``: a
    device on which somebody interrupts.
    """

    def __init__(self, *, hides: bool = False, stops_on: str = "", **per_request: float) -> None:
        self._per_request, self._hides, self._stops_on = per_request, hides, stops_on
        self._rng = np.random.default_rng(0)

    def batch_size(self, cells: object) -> int:
        return 1

    def run(self, trials: list[Trial]) -> Iterator[TrialResult]:
        for trial in trials:
            cell = trial.cell
            if cell.device == self._stops_on:
                raise KeyboardInterrupt
            host = cell.batch_size * self._per_request[cell.gc] * 1e-6
            host *= 1 + self._rng.normal(0, 0.001)
            device = 0.0
            if cell.device == "modelled":
                schedule = Schedule.load(trial.schedule_path)
                steps = model_steps(load_profile(cell.device_profile), {cell.batch_size: schedule})
                device = steps.token[cell.batch_size]
            token = max(device, host) if self._hides else device + host
            metrics = {"itl_p99": token + 2 * host, "tpot_mean": token}
            yield answer(trial, metrics)


@pytest.fixture
def models(tmp_path, capsys):
    """Call the command; status, what it printed, what it said of errors, its JSON."""

    def call(machine: Machine | None, *arguments: str) -> tuple[int, str, str, dict]:
        path = tmp_path / "map.json"
        words = ["advise", *TINY, "--output", str(tmp_path / "runs"), "--json", str(path)]
        asked = [] if "--models" in arguments else ["--models"]
        status = main([*words, *arguments, *asked], machine and (lambda _timeout: machine))
        said = capsys.readouterr()
        found = json.loads(path.read_text()) if path.exists() else {}
        return status, said.out, said.err, found

    return call


GC = ["--representation", "flat_arrays", "--delivery", "per_request", "--gc", "default,freeze"]


@pytest.mark.slow
def test_where_it_matters_is_worked_out_and_checked(models, tmp_path):
    machine = Machine(default=2.0, freeze=1.5)
    image = tmp_path / "map.svg"
    status, out, err, found = models(
        machine, *GC, "--step-ms", "1", "--image", str(image), "--tolerance", "5", "--check", "2"
    )
    words = " ".join(out.split())
    assert status == 0, err
    # 64 x 2 us x (25 % / 5 % - 1)
    assert (
        "freeze saves 5 % or more of a token's time as long as the device takes less than 51"
        in (words)
    )
    assert "at batch 64 and " in words
    assert "deepseek-v3-8xh200 and 1 ms a step it changes less than 5 % at every batch" in words
    for latency in ("time per output token", "99th percentile of the gaps between tokens"):
        assert f"2 of 2 predictions of the {latency} for a batch that was not measured" in words
    assert words.count("2 of 2 checks came true") == 2
    assert {(p["batch_size"], p["heap_objects"]) for p in found["points"]} == {
        (batch, heap) for batch in (4, 16, 64) for heap in (0, 1000)
    }
    assert [check["batch_size"] for check in found["checks"]] == [40] * 4
    assert found["baseline"] == "default"
    assert image.read_text().count("freeze against default")
    for line in ("6 of 8: batch 64, 1,000 heap objects", "7 of 8: checking batch 40 on opt-125m"):
        assert line in err


def test_every_candidate_is_predicted_and_checked(models):
    machine = Machine(default=2.0, freeze=1.5, disabled=1.9)
    status, _, _, found = models(
        machine,
        "--representation",
        "flat_arrays",
        "--delivery",
        "per_request",
        "--gc",
        "default,freeze,disabled",
        "--check",
        "2",
    )
    assert status == 0
    checked = [
        (check["candidate"], check["model"])
        for check in found["checks"]
        if check["latency"] == "token"
    ]
    quickest = ("opt-125m-h200-measured", "llama-3-70b-fp8-4xh100")
    assert checked == [(gc, model) for model in quickest for gc in ("freeze", "disabled")]
    assert len(found["points"]) == 2 * 3 * 2


def test_a_prediction_that_does_not_come_true_is_said(models):
    machine = Machine(default=2000.0, freeze=100.0, hides=True)
    status, out, _, found = models(machine, *GC, "--models", "llama-3-8b-h200")
    assert status == 0
    assert "▲ 0 of 1 prediction of the time per output token for a batch" in " ".join(out.split())
    assert [check["latency"] for check in found["checks"]] == ["token", "gap"]


def test_a_prediction_whose_check_is_interrupted_is_not_called_wrong(models):
    machine = Machine(default=2.0, freeze=1.5, stops_on="modelled")
    status, out, _, found = models(machine, *GC)
    assert status == 130
    assert "came true" not in out
    assert (found["checks"], found["is_complete"]) == ([], False)
    assert len(found["points"]) == 2 * 3


def test_no_difference_is_called_over_optimisation(models):
    status, out, _, _ = models(Machine(default=2.0, freeze=2.0), *GC, "--check", "0")
    words = " ".join(out.split())
    assert status == 0
    assert "freeze changes a token's time by less than 2 % at every batch, however quick" in words
    assert "it would be over-optimisation" in words


# On a machine that is busy throughout modelled waits end late, and a trial counts for nothing.
@pytest.mark.flaky(reruns=2)
@pytest.mark.slow
def test_a_real_run_has_every_point(models):
    status, _, err, found = models(
        None,
        "--batch-size",
        "2,4",
        "--heap-objects",
        "0",
        "--rounds",
        "3",
        "--check",
        "0",
        "--models",
        "opt-125m-h200",
        "--quiet",
    )
    assert (status, err) == (0, "")
    assert found["schema"] == "gcbench.result/1"
    assert found["baseline"] == "list_of_lists · per_request"
    assert [(p["candidate"], p["batch_size"]) for p in found["points"]] == [
        (f"flat_arrays · {delivery}", batch)
        for batch in (2, 4)
        for delivery in ("per_request", "columnar")
    ]
    for each in found["points"]:
        assert each["latencies"]["token"]["baseline_seconds"] > 0
        assert "first_token" in each["latencies"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--representation", "list_of_lists"], "nothing to compare"),
        (["--workload", "churn,chat"], "--workload: takes one value here"),
        (["--models", "opt-125"], "did you mean opt-125m"),
        (["--rounds", "2"], "--rounds"),
        (["--step-ms", "0"], "--step-ms"),
        (["--image", "map.jpg"], "must end in .png or .svg"),
        (["--device", "null"], "--device: takes no value with --models"),
        (["--batch-size", "0"], "--batch-size 0"),
        (["--tolerance", "0"], "--tolerance 0: with --models"),
        (["--first-rounds", "4"], "--first-rounds: says nothing with --models"),
        (["--predict"], "--predict and --models ask two questions"),
    ],
)
def test_a_mistake_is_a_sentence_and_leaves_nothing(models, tmp_path, arguments, says):
    status, out, err, found = models(None, *arguments)
    assert (status, out, found) == (2, "", {})
    assert says in err
    assert not (tmp_path / "runs").exists()
