"""Trials that share an engine count what they count alone, and fail alone."""

from typing import get_args

import msgspec
import pytest
from examples import every
from small import CELL, TRIAL_SECONDS, schedule, trial

from harness.experiment.local_executor import LocalExecutor
from harness.experiment.plan import engine_shared
from harness.metrics import METRICS
from harness.trial.spec import Mode, TrialResult

OF_OTHERS = ("timing", "wire", "stages", "stage_bytecodes")
"""Modes that a built-in engine without a worker does not have, or that count nothing."""
COUNTING: list[Mode] = [mode for mode in get_args(Mode) if mode not in OF_OTHERS]
SCHEDULE = schedule([5] * 8 + [12] * 8)


def results(trials):
    found = list(LocalExecutor(TRIAL_SECONDS).run(trials))
    assert [type(each) for each in found] == [TrialResult] * len(found), found
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    "changes",
    [{}, {"representation": "flat_arrays", "delivery": "columnar"}],
    ids=["rows", "columns"],
)
def test_a_fork_counts_to_the_digit_what_an_interpreter_of_its_own_counts(changes, tmp_path):
    cell = msgspec.structs.replace(CELL, gc="freeze", batch_size=16, **changes)
    asked = [trial(SCHEDULE, tmp_path, cell, mode=mode) for mode in ["counts", *COUNTING]]
    assert {engine_shared(each.cell, each.mode) for each in asked} == {
        engine_shared(cell, "counts")
    }
    together = results(asked)
    alone = [result for each in asked[1 :: every()] for result in results([each])]
    for mine, theirs in zip(together[1 :: every()], alone, strict=True):
        assert mine.mode == theirs.mode
        assert counted(mine) == counted(theirs)
    assert counted(together[0]) == counted(together[1])


def counted(result):
    """All that it says but times."""
    return {name: value for name, value in result.metrics.items() if METRICS[name].kind == "exact"}
