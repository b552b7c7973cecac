"""`gcbench advise`: what a fresh measurement calls better is recommended, and nothing else."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from small import answer

from harness.cli.main import main
from harness.experiment.advice import snippet
from harness.experiment.executor import Executor
from harness.trial.spec import Trial, TrialResult
from harness.verbs.advise_request import POLICIES

TINY = ["--device", "null", "--num-requests", "4", "--batch-size", "4", "--output-lens", "4"]


class Machine(Executor):
    """Takes as long for a step as ``seconds`` says of a policy, and a little noise more.

    ``afresh``: the same once the first measurement is over, whose seed is 0.
    """

    def __init__(self, seconds: dict[str, float], afresh: dict[str, float] | None = None) -> None:
        self.seconds, self.afresh = seconds, seconds if afresh is None else afresh
        self._rng = np.random.default_rng(0)
        self._first_hash = ""

    def batch_size(self, cells: object) -> int:
        return 1

    def run(self, trials: list[Trial]) -> Iterator[TrialResult]:
        for trial in trials:
            self._first_hash = self._first_hash or trial.schedule_sha256
            is_first = trial.schedule_sha256 == self._first_hash
            seconds = (self.seconds if is_first else self.afresh).get(trial.cell.gc, 1.0)
            noise = 1 + self._rng.normal(0, 0.002)
            metrics = {"host_time_per_step": seconds * noise, "peak_rss": 1e6, "gc_pause_max": 0.1}
            yield answer(trial, {"cyclic_garbage_per_step": 3.0} | metrics)


@pytest.fixture
def advise(tmp_path, capsys) -> Callable[..., tuple[int, str, str, dict]]:
    """Call the command; status, what it printed, what it said of errors, its JSON."""

    def call(machine: Machine | None, *arguments: str) -> tuple[int, str, str, dict]:
        path = tmp_path / "advice.json"
        words = ["advise", *TINY, "--output", str(tmp_path / "runs"), "--json", str(path)]
        status = main([*words, *arguments], machine and (lambda _timeout: machine))
        said = capsys.readouterr()
        found = json.loads(Path(path).read_text()) if path.exists() else {}
        return status, said.out, said.err, found

    return call


def test_what_is_better_twice_is_recommended_with_what_to_paste(advise):
    machine = Machine({"freeze": 0.9, "freeze+threshold:50000/20/20": 0.8, "disabled": 0.75})
    status, out, _, found = advise(machine)
    assert status == 0
    assert "Use freeze+threshold:50000/20/20: host_time_per_step -20" in out
    words = " ".join(out.split())
    assert "With the collector off altogether host_time_per_step changed by -2" in words
    assert "A step leaves 3 objects that only a collection frees" in words
    assert "gc.freeze()\ngc.set_threshold(50000, 20, 20)\n" in out
    assert found["recommends"] == "freeze+threshold:50000/20/20"
    assert [found[part]["seed"] for part in ("tried", "verified")] == [0, 1]
    assert found["verified"]["workloads"][0]["hash"] != found["tried"]["workloads"][0]["hash"]


def test_what_was_better_by_luck_alone_is_not(advise):
    machine = Machine({"freeze": 0.95}, afresh={})
    status, out, _, found = advise(machine)
    assert status == 0
    assert "Keep as_is: freeze looked best, but measured afresh it is same" in out
    assert (found["recommends"], found["snippet"]) == ("", "")


def test_one_that_never_collects_is_no_candidate(advise):
    policies = dict.fromkeys(map(str, POLICIES), 1.1) | {"as_is": 1.0, "disabled": 0.5}
    status, out, _, found = advise(Machine(policies))
    assert status == 0
    assert "Keep as_is: nothing that was tried looked better." in out
    assert found["verified"] is None
    assert found["bound"] == pytest.approx(0.5, rel=0.01)


def test_a_real_process_gets_what_the_snippet_sets(fresh_interpreter):
    text = snippet("freeze+threshold:50000/20/20", 64)
    script = f"{text}\nprint([gc.get_threshold(), gc.get_freeze_count() > 1000])"
    script = f"import json\n{script.replace('print(', 'print(json.dumps(')})"
    assert fresh_interpreter(script) == [[50000, 20, 20], True]
    assert snippet("as_is", 64) == ""
    assert snippet("batch_threshold", 64).endswith("gc.set_threshold(gc.get_threshold()[0] + 64)")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--gc", "freeze"], "nothing to choose from"),
        (["--device", "null,modelled"], "one workload, device and interpreter"),
        (["--rounds", "2"], "--rounds"),
        (["--first-rounds", "2"], "--first-rounds"),
        (["--gc", "frezze"], "did you mean freeze"),
    ],
)
def test_a_mistake_is_a_sentence_and_leaves_nothing(advise, tmp_path, arguments, says):
    status, out, err, found = advise(None, *arguments)
    assert (status, out, found) == (2, "", {})
    assert says in err
    assert not (tmp_path / "runs").exists()
