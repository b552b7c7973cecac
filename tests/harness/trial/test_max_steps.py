"""A bounded run counts its steps, and not the aborts of what it leaves unserved."""

import gc

import msgspec
import pytest
from small import CELL, schedule, trial

from engines.builtin.engine import Engine
from harness.trial.run import run_trial
from harness.trial.spec import Mode, TrialResult

BY_HAND = msgspec.structs.replace(CELL, gc="disabled")


@pytest.fixture
def collecting_aborts(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that collects by hand whenever a request is aborted."""
    healthy = Engine.abort_request

    def abort_request(engine: Engine, request_index: int) -> None:
        gc.collect(0)
        healthy(engine, request_index)

    monkeypatch.setattr(Engine, "abort_request", abort_request)


def bounded(folder, mode: Mode, cell=BY_HAND) -> TrialResult:
    asked = trial(schedule([40] * 30), folder, cell, mode=mode, max_steps=5)
    return run_trial(asked, lambda word: None)


@pytest.mark.slow
@pytest.mark.usefixtures("collecting_aborts")
@pytest.mark.parametrize(
    ("mode", "output_processing"),
    [("timing", "overlapped"), ("counts", "inline"), ("probed", "overlapped")],
)
def test_collections_of_the_aborts_are_not_in_the_window(tmp_path, mode, output_processing):
    cell = msgspec.structs.replace(BY_HAND, output_processing=output_processing)
    result = bounded(tmp_path, mode, cell)
    (process,) = result.processes
    assert result.metrics["num_steps"] == 5
    assert process.collections == (0, 0, 0)
    assert process.pause_seconds == (0.0, 0.0, 0.0)
    assert gc.isenabled()


@pytest.mark.slow
@pytest.mark.usefixtures("collecting_aborts")
def test_who_collects_in_an_abort_at_the_end_is_not_named_for_the_steps(tmp_path):
    result = bounded(tmp_path, "leaks")
    assert result.collector_calls == []
    assert result.metrics["explicit_collections"] == 0
    assert result.processes[0].collections == (0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("output_processing", ["inline", "overlapped"])
def test_a_worker_with_a_step_under_way_can_be_left(tmp_path, output_processing):
    cell = msgspec.structs.replace(
        CELL, worker="process", gc="threshold:5", output_processing=output_processing
    )
    result = bounded(tmp_path, "timing", cell)
    assert [process.role for process in result.processes] == ["engine", "worker"]
    assert result.metrics["num_steps"] == 5
