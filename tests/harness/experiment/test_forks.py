"""Trials that share an interpreter count what they count alone, and fail alone."""

from typing import get_args

import msgspec
import pytest
from examples import some
from small import CELL, TRIAL_SECONDS, schedule, trial

from harness.experiment.local_executor import LocalExecutor
from harness.experiment.plan import counting_shared
from harness.metrics import METRICS
from harness.trial.spec import Mode, TrialResult

OF_OTHERS = ("timing", "instructions", "wire", "stages", "stage_bytecodes")
"""Modes that a built-in engine without a worker does not have, that count nothing, or that have
interpreters of their own."""
COUNTING: list[Mode] = [mode for mode in get_args(Mode) if mode not in OF_OTHERS]
SCHEDULE = schedule([5] * 8 + [12] * 8)


def results(trials):
    found = list(LocalExecutor(TRIAL_SECONDS).run(trials))
    assert [type(each) for each in found] == [TrialResult] * len(found), found
    return found


ROWS = msgspec.structs.replace(CELL, gc="freeze", batch_size=16)
COLUMNS = msgspec.structs.replace(ROWS, representation="flat_arrays", delivery="columnar")


@pytest.mark.slow
def test_a_fork_counts_to_the_digit_what_an_interpreter_of_its_own_counts(tmp_path):
    """Whatever other engines are built in forks beside it."""
    asked = [
        trial(SCHEDULE, tmp_path, cell, mode=mode)
        for cell in (ROWS, COLUMNS)
        for mode in ("counts", "counts", *some(COUNTING))
    ]
    assert {counting_shared(each) for each in asked} == {counting_shared(asked[0])}
    together = [counted(each) for each in results(asked)]
    again = len(asked) // 2
    assert [together[0], together[again]] == [together[1], together[again + 1]]
    alone = [counted(result) for each in some(asked) for result in results([each])]
    assert some(together) == alone


@pytest.mark.parametrize(("setup", "is_shared"), [("shipped", True), ("served", False)])
def test_what_aborts_in_forks_has_interpreters_of_its_own(tmp_path, setup, is_shared):
    cell = msgspec.structs.replace(
        CELL, engine="vllm-hostpath", representation="native", setup=setup, detokenizer="none"
    )
    asked = trial(SCHEDULE, tmp_path, cell, mode="opcodes")
    assert (counting_shared(asked) is not None) == is_shared


def counted(result):
    """All that it says but times, and how large the heap is that full passes go by."""
    exact = {name: value for name, value in result.metrics.items() if METRICS[name].kind == "exact"}
    return result.mode, exact, [process.state for process in result.processes]
