"""What an experiment gives up, goes on with, compares or says: each threshold, both sides."""

from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from small import CELL, STATE, Calls, answer, plan, summary
from test_rounds import Machine, run

from harness.experiment.crossover import Check
from harness.experiment.executor import Block, run_block
from harness.experiment.machine_speed import speed_changes
from harness.experiment.node_noise import NodeNoise, node_noise
from harness.experiment.outcomes import Trials
from harness.experiment.plan import timing_round
from harness.experiment.request_slices import slices
from harness.experiment.rounds import Precision
from harness.experiment.store import trial_key
from harness.explain.cadence import Cadence
from harness.statistics.noise_floor import noise_floor
from harness.trial.spec import Trial

OTHER = msgspec.structs.replace(CELL, gc="freeze")
ASKED = Trial(cell=CELL, schedule_path="", schedule_sha256="")


def test_a_cell_that_has_failed_twice_is_given_up():
    machine = Machine()
    machine.broken = {OTHER}
    run(machine, plan([CELL, OTHER], rounds=7))
    assert [trial.cell for trial in machine.asked[1:]].count(OTHER) == 2


def test_within_a_block_it_is_given_up_after_two_failures_as_well():
    machine, of = Machine(), plan([CELL], rounds=4)
    machine.broken = {CELL}
    turns = [turn for number in range(1, 5) for turn in timing_round(of, number)]
    block = Block(round=1, group=0, turns=turns, trials=[ASKED] * 4)
    assert len(list(run_block(block, Calls(machine, 1)))) == 2


@pytest.mark.parametrize(("spoiled", "tries"), [(1, 2), (2, 3), (3, 3)])
def test_a_spoiled_trial_is_tried_three_times(spoiled, tries):
    machine, of = Machine(), plan([CELL], rounds=1)
    machine.busy[CELL] = spoiled
    block = Block(round=1, group=0, turns=list(timing_round(of, 1)), trials=[ASKED])
    (ended,) = run_block(block, Calls(machine, 1))
    assert (len(machine.asked), bool(ended.outcome.invalid)) == (tries, spoiled == 3)


def test_intervals_are_looked_at_every_third_round():
    looks = []

    def summarise():
        looks.append(1)
        wide = SimpleNamespace(ratio=1.0, ci95=(0.5, 1.5), rounds=7)
        return SimpleNamespace(comparisons=[wide])

    precise = Precision(0.01, 1e9)
    assert [precise.wants_more(summarise) for _ in range(7)] == [True] * 7
    assert len(looks) == 3


@pytest.mark.parametrize(("seconds", "is_said"), [(1.2499, False), (1.25, True)])
def test_a_machine_is_said_to_have_changed_by_a_quarter(seconds, is_said):
    timings = {
        CELL: {
            n: answer(ASKED, {"host_time_per_step": s}) for n, s in enumerate((1.0, 1.0, seconds))
        }
    }
    assert bool(speed_changes([[CELL]], timings)) == is_said


def test_a_node_is_fit_that_finds_3_percent_in_14_rounds():
    def noise(mde):
        return NodeNoise(node="n", rounds=14, trial_cv=0.0, sd_log_ratio=0.0, mde=mde)

    assert [noise(mde).is_fit for mde in (0.03, 0.0301, None)] == [True, False, False]
    rng = np.random.default_rng(0)
    seconds = np.exp(0.01 * rng.standard_normal((20, 2)))
    pairs = [tuple(answer(ASKED, {"m": float(each)}) for each in both) for both in seconds]
    assert node_noise("m", pairs)[0].mde == noise_floor(seconds).mde[14]


def requests(count: int):
    """Completed ones, one after another."""
    moments = np.arange(1, count + 1) * 10**9
    return {
        "finish_reason": np.ones(count, np.int8),
        "sent_ns": moments,
        "first_ns": moments + 1,
        "last_ns": moments + 2,
        "num_tokens": np.full(count, 2),
    }


def test_ten_requests_make_a_slice_and_twenty_slices_are_the_most():
    assert [len(slices(requests(count))["ttft_mean"]) for count in (70, 79, 80, 200, 220)] == [
        7,
        7,
        8,
        20,
        20,
    ]
    with pytest.raises(ValueError, match="69 requests completed"):
        slices(requests(69))


@pytest.mark.parametrize(("measured", "agrees"), [(0.125, True), (0.1251, False)])
def test_a_prediction_agrees_within_half_the_tolerance(measured, agrees):
    check = Check(
        latency="token",
        candidate="b",
        batch_size=8,
        heap_objects=0,
        model="m",
        predicted=(0.0, 0.0, 0.0),
        measured=(measured,) * 3,
    )
    assert check.agrees(0.25) == agrees


@pytest.mark.parametrize(("predicted", "is_near"), [(1030, True), (1031, False)])
def test_a_cadence_is_near_within_3_percent(predicted, is_near):
    found = Cadence(
        label="",
        python="3.11.7",
        thresholds=STATE.thresholds,
        long_lived=0,
        num_steps=1,
        predicted=(predicted, 0, 0),
        observed=(1000, 0, 0),
    )
    assert found.is_near == is_near


@pytest.mark.parametrize(("share", "is_said"), [(0.1, False), (0.1001, True)])
def test_pauses_are_others_doing_beyond_a_tenth(share, is_said):
    of = plan([CELL], rounds=3)
    metrics = {"host_time_per_step": 1.0, "gc_pause_preempted": share}
    outcomes = {
        trial_key(number, turn.place, turn.cell, "timing"): answer(ASKED, metrics)
        for number in range(1, 4)
        for turn in timing_round(of, number)
    }
    assert any("had no core" in note for note in summary(of, outcomes).notes) == is_said


def test_an_invalid_trial_decides_nothing():
    of = plan([CELL], rounds=1)
    (turn,) = timing_round(of, 1)
    key = trial_key(1, turn.place, turn.cell, "timing")
    valid, spoiled = answer(ASKED, {}), answer(ASKED, {}, invalid="the machine was too busy")
    assert Trials(of, {key: valid}).timings[CELL] == {1: valid}
    found = Trials(of, {key: spoiled})
    assert (found.timings[CELL], found.invalid) == ({}, [spoiled])


def test_trials_of_two_blocks_are_no_pair():
    of = plan([CELL, OTHER], rounds=2)
    outcomes = {}
    for number, runs in ((1, ("a", "a")), (2, ("a", "b"))):
        for cell, block in zip((CELL, OTHER), runs, strict=True):
            asked = msgspec.structs.replace(ASKED, cell=cell)
            found = answer(asked, {"host_time_per_step": 1.0 * number})
            key = trial_key(number, of.cells.index(cell), cell, "timing")
            outcomes[key] = msgspec.structs.replace(found, block=block)
    pairs = Trials(of, outcomes).pairs(CELL, OTHER, "host_time_per_step")
    assert [each.metrics["host_time_per_step"] for each, _ in pairs] == [1.0]
