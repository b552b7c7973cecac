"""Different work has no ratio, and all other work keeps its own."""

from collections.abc import Mapping

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from small import CELL, answer, plan, summary

from harness.axes import Cell
from harness.experiment.plan import Plan, timing_round
from harness.experiment.result import ExperimentResult
from harness.experiment.store import trial_key
from harness.trial.spec import Trial

CELLS = [
    msgspec.structs.replace(CELL, workload=workload, gc=gc)
    for workload in ("small", "large")
    for gc in ("default", "freeze", "disabled")
]
PLAN = plan(CELLS, rounds=3)


def measured(of: Plan, other_text: Mapping[Cell, set[int]]) -> ExperimentResult:
    """Equal times everywhere; another text in these cells' rounds."""
    outcomes = {}
    for number in range(1, of.rounds + 1):
        for turn in timing_round(of, number):
            asked = Trial(cell=turn.cell, schedule_path="", schedule_sha256="", seed=turn.seed)
            text = "other" if number in other_text.get(turn.cell, ()) else "text"
            result = msgspec.structs.replace(
                answer(asked, {"host_time_per_step": 1 + turn.seed % 97 / 1e4}), text_sha256=text
            )
            outcomes[trial_key(number, turn.place, turn.cell, "timing")] = result
    return summary(of, outcomes)


def compared(result: ExperimentResult) -> set[tuple[str, str]]:
    return {(each.baseline, each.candidate) for each in result.comparisons}


def notes(result: ExperimentResult) -> list[str]:
    return result.not_compared


def test_a_cell_that_did_other_work_loses_its_own_comparison_and_no_other():
    result = measured(PLAN, {CELLS[1]: {2}})
    assert compared(result) == {
        ("small · default", "small · disabled"),
        ("large · default", "large · freeze"),
        ("large · default", "large · disabled"),
    }
    assert notes(result) == [
        "small · freeze produced other text than small · default; different work has no ratio."
    ]


def test_a_baseline_that_did_other_work_is_named_once_and_costs_its_own_group_alone():
    result = measured(PLAN, {CELLS[3]: {1, 2, 3}})
    assert compared(result) == {
        ("small · default", "small · freeze"),
        ("small · default", "small · disabled"),
    }
    assert notes(result) == [
        "large · default, the baseline, produced other text than each of the 2 "
        "cells that would be compared with it; different work has no ratio."
    ]


def test_a_baseline_that_disagrees_with_itself_is_said_to():
    result = measured(PLAN, {CELLS[0]: {2}})
    assert {baseline for baseline, _ in compared(result)} == {"large · default"}
    assert notes(result) == [
        "small · default, the baseline, did not produce the same text in all its "
        "trials; different work has no ratio."
    ]


def test_groups_of_one_workload_that_did_other_work_keep_their_own_ratios():
    """Which device is wrong is not known; inside each of them the work is the same."""
    cells = [
        msgspec.structs.replace(CELL, device=device, gc=gc)
        for device in ("null", "modelled")
        for gc in ("default", "freeze")
    ]
    of = plan(cells, rounds=3, decide=["host_time_per_step"] * 2)
    result = measured(of, {cell: {1, 2, 3} for cell in cells[2:]})
    assert len(result.comparisons) == 2
    assert (
        "modelled · default produced other text than null · default, though both replay small: "
        "their figures do not belong side by side."
    ) in result.notes


def test_tokens_are_held_against_those_of_the_same_script():
    """An engine of another script, or of none, may give any others."""
    cells = CELLS[:2]
    of = plan(cells, rounds=3)

    def sentences(*scripts: str) -> list[str]:
        outcomes = {}
        for number in range(1, of.rounds + 1):
            for turn in timing_round(of, number):
                asked = Trial(cell=turn.cell, schedule_path="", schedule_sha256="", seed=turn.seed)
                metrics = {"host_time_per_step": 1 + turn.seed % 97 / 1e4}
                result = answer(asked, metrics, tokens_sha256=turn.cell.gc)
                script = scripts[cells.index(turn.cell)]
                result = msgspec.structs.replace(result, script=script)
                outcomes[trial_key(number, turn.place, turn.cell, "timing")] = result
        return notes(summary(of, outcomes))

    assert sentences("own", "own") == [
        "freeze produced other tokens than default; different work has no ratio."
    ]
    assert sentences("own", "another") == sentences("", "") == sentences("own", "") == []


def test_a_text_is_held_against_those_of_the_same_engine():
    """An engine begins and ends a text in a way of its own."""
    ours = [msgspec.structs.replace(CELL, gc=gc) for gc in ("default", "freeze")]
    others = [msgspec.structs.replace(cell, engine="vllm-hostpath") for cell in ours]
    of = plan([*ours, *others], rounds=3)
    alike = measured(of, {cell: {1, 2, 3} for cell in others})
    assert len(alike.comparisons) == 3
    assert notes(alike) == []
    odd = measured(of, {others[0]: {1, 2, 3}})
    assert len(odd.comparisons) == 2
    assert len(notes(odd)) == 1


@given(st.dictionaries(st.sampled_from(CELLS), st.sets(st.integers(1, 3), min_size=1)))
def test_what_is_compared_did_the_same_work_and_what_is_not_has_a_sentence(other):
    """Two cells have a ratio exactly if all trials of both made one text."""
    result = measured(PLAN, other)
    texts = {}
    for cell in CELLS:
        others = other.get(cell, set())
        found = {"other": bool(others), "text": len(others) < PLAN.rounds}
        texts[f"{cell.workload} · {cell.gc}"] = {
            text for text, is_there in found.items() if is_there
        }
    ids = {cell: f"{cell.workload} · {cell.gc}" for cell in CELLS}
    pairs = {
        (ids[CELLS[place - place % 3]], ids[cell]) for place, cell in enumerate(CELLS) if place % 3
    }
    equal = {pair for pair in pairs if len(texts[pair[0]] | texts[pair[1]]) == 1}
    assert compared(result) == equal
    said = " ".join(notes(result))
    for baseline, candidate in pairs - equal:
        assert candidate in said or f"{baseline}, the baseline" in said
