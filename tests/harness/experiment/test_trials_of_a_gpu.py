"""Trials of one GPU, in processes of their own over the stand-in for ``torch.cuda``."""

import os
from contextlib import ExitStack
from pathlib import Path

import msgspec
import psutil
import pytest
from small import CELL, TRIAL_SECONDS, answer, schedule, trial

from engines.protocol import FIT
from harness.experiment.local_executor import LocalExecutor
from harness.experiment.trial_process import TrialInterpreter
from harness.machine.describe import cores_usable
from harness.trial.spec import TrialBatch, TrialResult

ROOT = Path(__file__).parents[3]
ON_GPU = msgspec.structs.replace(CELL, device="cuda", model="opt-tiny", heap_objects=0)
SHORT = schedule([6, 5, 4])


@pytest.fixture
def stand_in(monkeypatch):
    """For the interpreters of trials, not for this one."""
    folders = [ROOT / "tests" / "gpu" / "rehearsal", os.environ["PYTHONPATH"]]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, folders)))


@pytest.fixture
def played(tmp_path):
    """A trial whose interpreter is a shell script, and how its engine is to run from now on."""
    path, said = tmp_path / "python", tmp_path / "answer.json"
    path.write_text(f"#!/bin/sh\nread trial; echo ready; read go; cat {said}\n")
    path.chmod(0o755)
    asked = trial(SHORT, tmp_path, msgspec.structs.replace(ON_GPU, python=str(path)))

    def runs(**state):
        found = msgspec.structs.replace(answer(asked, {}), engine_state=state)
        said.write_bytes(msgspec.json.encode(found))

    return asked, runs


@pytest.mark.parametrize("fit", [1, 2, 3, 4, 9])
def test_as_many_get_ready_as_the_gpu_holds_and_a_note_says_where_that_is_few(played, fit):
    asked, runs = played
    executor, most = LocalExecutor(TRIAL_SECONDS), min(4, cores_usable())
    runs(**{FIT: fit})
    list(executor.run([asked]))
    for _ in range(2):
        assert executor.batch_size([CELL, asked.cell]) == min(fit, most)
    other = msgspec.structs.replace(asked.cell, gc="disabled")
    assert executor.batch_size([other, asked.cell]) == 1
    trials = "1 trial" if fit == 1 else f"{fit} trials"
    note = f"{trials} of small at a time: the GPU's memory holds no more."
    assert executor.notes == ([note] if fit < most else [])


def test_one_whose_cache_is_smaller_beside_others_is_not_to_be_used(played):
    asked, runs = played
    executor = LocalExecutor(TRIAL_SECONDS)
    runs(**{FIT: 9, "num_kv_tokens": 128})
    list(executor.run([asked]))
    runs(**{FIT: 7, "num_kv_tokens": 128})
    assert [each.invalid for each in executor.run([asked] * 2)] == ["", ""]
    runs(**{FIT: 7, "num_kv_tokens": 96})
    why = "beside others on the GPU it runs otherwise: num_kv_tokens is 96, alone 128"
    assert [each.invalid for each in executor.run([asked] * 2)] == [why] * 2


@pytest.mark.slow
def test_a_trial_says_how_many_fit_and_then_they_get_ready_side_by_side(stand_in, tmp_path):
    executor = LocalExecutor(TRIAL_SECONDS)
    asked = trial(SHORT, tmp_path, ON_GPU)
    assert executor.batch_size([ON_GPU]) == 1
    (alone,) = executor.run([asked])
    assert isinstance(alone, TrialResult), alone.reason
    assert alone.engine_state[FIT] >= 4
    size = executor.batch_size([ON_GPU])
    assert size == min(4, cores_usable())
    together = list(executor.run([asked] * size))
    assert [each.invalid for each in together] == [""] * size
    assert {each.tokens_sha256 for each in together} == {alone.tokens_sha256}
    assert list(alone.stage_seconds)[:6] == [
        "start",
        "engine",
        "context",
        "weights",
        "kernels",
        "capture",
    ]
    # The last one has waited for its turn as long as the others took.
    assert together[-1].stage_seconds["turn"] > sum(
        each.stage_seconds["warm_up"] + each.window_seconds for each in together[:-1]
    )


@pytest.mark.slow
def test_what_waits_on_a_gpu_does_nothing_while_another_measures(stand_in, tmp_path):
    asked = TrialBatch(trials=[trial(SHORT, tmp_path, ON_GPU)])
    with ExitStack() as stack:
        first, waiting = (
            stack.enter_context(TrialInterpreter(asked, TRIAL_SECONDS)).trials[0] for _ in range(2)
        )
        for process in (first, waiting):
            process.wait_until_ready()
        watched = psutil.Process(waiting.pid)
        before = watched.num_ctx_switches(), watched.cpu_times()
        assert isinstance(first.measure(), TrialResult)
        assert (watched.num_ctx_switches(), watched.cpu_times()) == before
        assert isinstance(waiting.measure(), TrialResult)
