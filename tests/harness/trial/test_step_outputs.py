"""Mode ``outputs``: what each step gives is told apart, by request, step and token."""

import inspect
import sys
import threading
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from small import CELL, answer, engine, schedule

from engines.builtin.engine import Engine
from engines.builtin.scheduler import Scheduler
from engines.protocol import StepOutput
from harness.axes import Cell
from harness.experiment.first_difference import outputs_difference
from harness.trial.answers import Answers
from harness.trial.client import TrialClient
from harness.trial.clock import VirtualClock
from harness.trial.output_hashes import of_function
from harness.trial.outputs import OutputWatch
from harness.trial.ran_functions import noted_functions
from harness.trial.spec import Trial, TrialResult
from harness.trial.watch import Extent

OF = schedule([5, 3, 6, 4])
SCHEDULE = "engines/builtin/scheduler.py", "Scheduler.schedule"
DETAILED = {"detokenizer": "byte_table", "logprobs": "lists:2"}


def served(path, change: Callable[[StepOutput], StepOutput] = lambda output: output, **axes):
    """What a trial answers of outputs; ``change`` comes between engine and client."""
    cell: Cell = msgspec.structs.replace(CELL, **axes)
    made: Engine = engine(OF, cell)
    step = made.step
    made.step = lambda: change(step())  # type: ignore[method-assign]
    watch = OutputWatch(made, Extent(4, lines_of=[SCHEDULE]))
    client = TrialClient(
        made,
        watch.step,
        OF,
        VirtualClock(),
        streams=made.request_stream if "request_streams" in axes else None,
    )
    watch.window_opens()
    client.run()
    watch.window_closes(Answers(client))
    made.shutdown()
    asked = Trial(cell=cell, schedule_path="", schedule_sha256="", mode="outputs")
    result: TrialResult = answer(asked, {})
    return msgspec.structs.replace(result, outputs=watch.outputs(str(path)), ran=list(watch.ran))


@pytest.mark.parametrize(
    "axes",
    [
        {"representation": "flat_arrays", "delivery": "columnar"},
        {"delivery": "vllm_v1"},
        {"output_processing": "overlapped"},
        {"request_streams": "collector"},
        {"representation": "flat_arrays", "delivery": "columnar", "request_streams": "collector"},
        DETAILED
        | {"representation": "flat_arrays", "delivery": "columnar", "logprobs": "arrays:2"}
        | {"request_streams": "collector"},
        DETAILED,
        DETAILED
        | {"representation": "flat_arrays", "delivery": "columnar", "logprobs": "arrays:2"},
    ],
    ids=str,
)
def test_the_same_answers_are_the_same_however_they_are_delivered(tmp_path, axes):
    first = DETAILED if "logprobs" in axes else {}
    expected, result = served(tmp_path / "a", **first), served(tmp_path / "b", **axes)
    assert outputs_difference(result, expected) == ""
    assert result.outputs.tokens == expected.outputs.tokens
    assert result.outputs.logprobs == expected.outputs.logprobs != ("" if first else None)


def shared(output: StepOutput) -> StepOutput:
    """One object for all requests of a step."""
    each = [one._replace(outputs=[one.outputs[0]] * len(one.outputs)) for one in output.delivered]
    return output._replace(delivered=each)


def in_step(number: int, **fields: object) -> Callable[[StepOutput], StepOutput]:
    """The last request's completion has other fields in one step, counted from 1."""
    steps = iter(range(1, 100))

    def change(output: StepOutput) -> StepOutput:
        if next(steps) == number:
            (completion,) = output.delivered[0].outputs[-1].outputs
            output.delivered[0].outputs[-1].outputs[0] = replace(completion, **fields)
        return output

    return change


def test_one_object_for_all_requests_is_told_by_request_step_and_token(tmp_path):
    """`output_token_ids` says what it did; only what steps give is wrong."""
    expected, result = served(tmp_path / "a"), served(tmp_path / "b", shared)
    said = outputs_difference(result, expected)
    assert said.startswith("tokens (first in step 1, request 0, token 2: ")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (in_step(3, token_ids=[9]), "tokens (first in step 3, request 3, token 3: 9 in the place"),
        (in_step(2, text="other"), "text (first in step 2, request 3, text 2)"),
        (in_step(2, logprobs=[]), "log-probabilities (first in step 5, request 2, log-prob"),
    ],
)
def test_the_first_thing_that_differs_is_named(tmp_path, change, words):
    expected = served(tmp_path / "a", **DETAILED)
    said = outputs_difference(served(tmp_path / "b", change, **DETAILED), expected)
    assert said.startswith(words.split(" (")[0])
    if "log-" not in words:
        assert said.startswith(words)


def test_a_log_that_is_gone_leaves_what_differs_and_no_place(tmp_path):
    expected, result = served(tmp_path / "a"), served(tmp_path / "b", shared)
    (tmp_path / "a").unlink()
    assert outputs_difference(result, expected) == "tokens"


def _is_blind() -> bool:
    """A plug-in of pytest may have a thread, which ran before and cannot be looked into."""
    return sys.version_info < (3, 12) and threading.active_count() > 1


def test_functions_that_ran_are_named_and_those_that_wait_on_the_stack(tmp_path):
    is_blind = _is_blind()
    ran = {each.name for each in served(tmp_path / "a").ran}
    if is_blind:
        assert ran == set()
        return
    assert {"Engine.step", "Engine.add_request", "Scheduler.schedule"} <= ran
    assert "Engine.abort_request" not in ran
    lines, first = inspect.getsourcelines(Scheduler.schedule)
    looked_at = [each for each in served(tmp_path / "b").ran if each.lines]
    assert {of_function(each.file, each.name) for each in looked_at} == {SCHEDULE}, "as asked"
    (schedule,) = (each for each in looked_at if each.name == "Scheduler.schedule")
    text = "".join(lines[line - first] for line in schedule.lines)
    assert "rows, num_scheduled = self._schedule_running()" in text
    assert "self._preempt()" not in text, "no blocks are short"
    assert noted_functions(engine(OF)) == [], "it has ended"


@pytest.mark.slow
def test_a_worker_s_loop_has_run_though_it_was_entered_before(tmp_path):
    ran = {each.name for each in served(tmp_path / "a", worker="process").ran}
    if _is_blind():
        assert ran == set()
        return
    assert {"WorkerProcess.run", "WorkerProcess._step"} <= ran
    assert "WorkerProcess._make_good" not in ran
