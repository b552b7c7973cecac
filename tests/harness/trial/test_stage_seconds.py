"""Every second of a trial's process belongs to one stage."""

import time

import pytest
import small

from harness.trial.run import run_trial

STAGES = ["start", "engine", "heap", "warm_up", "window", "end", "turn"]


@pytest.mark.parametrize("slice_steps", [0, 2])
def test_the_stages_make_the_whole_and_others_turns_are_in_none_of_them(tmp_path, slice_steps):
    away = []

    def say_and_wait(word: bytes) -> None:
        began = time.perf_counter()
        sum(range(200_000))
        away.append(time.perf_counter() - began)

    trial = small.trial(small.schedule([12, 9]), tmp_path, mode="timing", slice_steps=slice_steps)
    found = run_trial(trial, say_and_wait)
    stages = found.stage_seconds
    assert list(stages) == STAGES
    assert min(stages.values()) >= 0
    assert stages["turn"] >= sum(away)
    assert stages["window"] == pytest.approx(found.window_seconds)
    assert sum(stages.values()) == pytest.approx(stages["start"] + found.wall_seconds)
