"""Pauses that other programs have made longer are said to be."""

import msgspec
import pytest
from small import CELL, answer, plan, summary

from harness.experiment.plan import timing_round
from harness.experiment.store import trial_key
from harness.trial.spec import Trial

CELLS = [msgspec.structs.replace(CELL, gc=gc) for gc in ("default", "disabled")]


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.23, ["default: in 23.0 % of the time of its pauses the thread that collected had no "
                "core, so other programs have made them longer."]),
        (0.02, []),
    ],
)  # fmt: skip
def test_a_cell_whose_pauses_had_no_core_is_named(share, said):
    of = plan(CELLS, rounds=3)
    outcomes = {}
    for number in range(1, 4):
        for turn in timing_round(of, number):
            asked = Trial(cell=turn.cell, schedule_path="", schedule_sha256="", seed=turn.seed)
            preempted = share if turn.cell.gc == "default" else None
            metrics = {"host_time_per_step": 1.0, "gc_pause_preempted": preempted}
            key = trial_key(number, turn.place, turn.cell, "timing")
            outcomes[key] = answer(asked, metrics)
    notes = summary(of, outcomes).notes
    assert [note for note in notes if "no core" in note] == said
