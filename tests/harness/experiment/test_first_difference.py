"""Cells of a comparison whose steps give requests something else have no ratio, and say where."""

import msgspec
from small import CELL, answer, plan, summary

from harness.experiment.plan import exact_turns, timing_round
from harness.experiment.store import trial_key
from harness.trial.output_hashes import OutputHashes
from harness.trial.spec import Trial

CELLS = [msgspec.structs.replace(CELL, delivery=each) for each in ("per_request", "vllm_v1")]
PLAN = plan(CELLS, rounds=7, extra_modes=["outputs"])


def measured(tokens: str):
    """Equal rounds of both cells, whose second gives these tokens step by step."""
    outcomes = {}
    for number in range(1, PLAN.rounds + 1):
        for turn in timing_round(PLAN, number):
            asked = Trial(cell=turn.cell, schedule_path="", schedule_sha256="", seed=turn.seed)
            result = answer(asked, {"host_time_per_step": 1 + turn.seed % 97 / 1e4})
            outcomes[trial_key(number, turn.place, turn.cell, "timing")] = result
    for turn in exact_turns(PLAN):
        asked = Trial(cell=turn.cell, schedule_path="", schedule_sha256="", mode="outputs")
        is_second = turn.cell.delivery == "vllm_v1"
        given = OutputHashes(tokens=tokens if is_second else "same", counts="", reasons="")
        result = msgspec.structs.replace(answer(asked, {}), outputs=given)
        outcomes[trial_key(turn.round, turn.place, turn.cell, turn.mode)] = result
    return summary(PLAN, outcomes)


def test_a_cell_whose_steps_give_other_tokens_is_not_compared():
    found = measured("other")
    assert found.comparisons == []
    assert (
        "vllm_v1 produced other tokens than per_request; different work has no "
        "ratio." in found.not_compared
    )
    assert len(measured("same").comparisons) == 1
