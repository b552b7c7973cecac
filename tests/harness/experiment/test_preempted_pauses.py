"""Pauses that other programs have made longer are said to be."""

import msgspec
import pytest
from small import CELL, answer, plan, summary

from harness.experiment.plan import timing_round
from harness.experiment.store import trial_key
from harness.trial.spec import Trial

POLICIES = ("default", "disabled", "freeze", "as_is", "batch_threshold")
CELLS = [msgspec.structs.replace(CELL, gc=gc) for gc in POLICIES]


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        (
            [0.23, None],
            [
                "default: in 23.0 % of the time of pauses the thread that collected had no "
                "core, so other programs have made them longer."
            ],
        ),
        (
            [0.23, 0.45],
            [
                "default, disabled: in 23.0 to 45.0 % of the time of pauses the thread "
                "that collected had no core, so other programs have made them longer."
            ],
        ),
        (
            [0.23, 0.45, 0.2, 0.3, 0.02],
            [
                "default, disabled, freeze and 1 more: in 20.0 to 45.0 % of the time of "
                "pauses the thread that collected had no core, so other programs have "
                "made them longer."
            ],
        ),
        ([0.02, None], []),
    ],
)
def test_cells_whose_pauses_had_no_core_are_named(shares, said):
    cells = CELLS[: len(shares)]
    of = plan(cells, rounds=3)
    outcomes = {}
    for number in range(1, 4):
        for turn in timing_round(of, number):
            asked = Trial(cell=turn.cell, schedule_path="", schedule_sha256="", seed=turn.seed)
            preempted = shares[cells.index(turn.cell)]
            metrics = {"host_time_per_step": 1.0, "gc_pause_preempted": preempted}
            key = trial_key(number, turn.place, turn.cell, "timing")
            outcomes[key] = answer(asked, metrics)
    notes = summary(of, outcomes).notes
    assert [note for note in notes if "no core" in note] == said
