"""Mode ``leaks`` as a trial runs it: nothing of what is made once is a leak, and who collects."""

import gc
from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import replace
from small import CELL, schedule, trial

from engines.builtin.engine import Engine
from harness.metrics import METRICS
from harness.trial.run import run_trial
from harness.trial.spec import TrialResult

REPLAYED = replace(CELL, scheduler="replayed")
COLUMNS = replace(CELL, representation="flat_arrays", delivery="columnar")
TURNS = {"arrival_seconds": np.arange(64) / 1e3, "previous_turn": np.arange(-8, 56).clip(-1)}
PER_STEP = ("leaked_objects_per_step", "leaked_blocks_per_step", "cyclic_garbage_per_step")


@pytest.fixture(scope="module", autouse=True)
def heap_of_torch_apart() -> Iterator[None]:
    import torch

    del torch
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def left(folder, cell=CELL, output_lens=(60, 50, 40) * 8, **changes) -> TrialResult:
    of = schedule(output_lens, **changes)
    return run_trial(trial(of, folder, cell, mode="leaks"), lambda word: None)


@pytest.mark.parametrize(
    ("cell", "retain"), [(CELL, "finish"), (COLUMNS, "step"), (REPLAYED, "step")]
)
def test_a_healthy_engine_leaves_nothing(tmp_path, cell, retain):
    result = left(tmp_path, cell, retain=retain)
    steps = result.metrics["num_steps"]
    assert steps > 100
    objects, blocks, garbage = (result.metrics[name] * steps for name in PER_STEP)
    assert abs(objects) <= 3
    assert abs(blocks) < METRICS["leaked_blocks_per_step"].least_change * steps
    assert garbage == 0
    assert result.collector_calls == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("worker", "changes"),
    [("process", {}), ("in-process", TURNS)],
    ids=["prompts that are pickled", "turns that arrive"],
)
def test_what_the_harness_keeps_of_a_request_is_not_the_engines(tmp_path, worker, changes):
    result = left(tmp_path, replace(CELL, worker=worker), range(3, 67), **changes)
    assert abs(result.metrics["leaked_blocks_per_step"] * result.metrics["num_steps"]) < 32


def test_a_policy_that_collects_by_hand_is_off(tmp_path):
    result = left(tmp_path, replace(CELL, gc="on_wait:5"))
    assert result.metrics["explicit_collections"] == 0
    assert result.processes[0].policy == "disabled"
    assert result.processes[0].collections == (0, 0, 0)


@pytest.mark.parametrize("step", [1, 250])
def test_who_sets_the_collector_in_a_step_is_named_in_the_warm_up_too(tmp_path, monkeypatch, step):
    """And what is set stays so in the warm-up, and is not carried out in the window."""
    before, steps, own = gc.get_threshold(), [], Engine.step

    def sets_once(engine):
        steps.append(engine)
        if len(steps) == step:
            gc.set_threshold(123, 4, 5)
        return own(engine)

    monkeypatch.setattr(Engine, "step", sets_once)
    result = left(tmp_path)
    found = gc.get_threshold()
    gc.set_threshold(*before)
    assert result.metrics["collector_setting_calls"] == 1
    (call,) = result.collector_calls
    assert (call.name, call.function.rpartition(".")[2], call.count) == (
        "set_threshold",
        "sets_once",
        1,
    )
    assert found == ((123, 4, 5) if step == 1 else before)
