"""Machines that change their speed from round to round, under trials whose truth is known."""

import msgspec
import numpy as np
import pytest
from small import CELL, answer, plan, process, summary

from harness.experiment.machine_speed import at_usual_speed, slowdowns
from harness.experiment.plan import beside_baseline, timing_round
from harness.experiment.store import trial_key
from harness.trial.spec import Trial

WAIT = 0.3
HOST = {"default": 0.6, "freeze": 0.1, "disabled": 0.2}
SLOWDOWNS = (0.7, 0.75, 0.8, 0.9, 1.0, 1.0, 1.1, 1.2, 1.3, 1.4)
ROUNDS = len(SLOWDOWNS)


def result(cell, host: float, slowdown: float, passes: float = 0.0, launch: float = 0.0):
    """A trial of 100 requests and 100 steps: ``host`` and ``passes`` seconds on a usual machine,
    ``launch`` on any.
    """
    host_seconds, full = (host + passes) * slowdown + launch, passes * slowdown
    wall = WAIT + host_seconds
    metrics = {
        "request_throughput": 100 / wall,
        "seconds_per_request": wall / 100,
        "host_time_per_step": host_seconds / 100,
        "device_idle_share": host_seconds / wall,
        "phase_launch": launch / 100,
        "gc_full_pass_share": full / wall,
        "gc_full_pass_host_share": full / host_seconds,
    }
    made = answer(Trial(cell=cell, schedule_path="", schedule_sha256=""), metrics)
    engine = msgspec.structs.replace(process((9, 3, 1)), pause_seconds=(0.0, 0.0, full))
    return msgspec.structs.replace(made, processes=[engine])


def measured(
    seed: int, hosts=HOST, noise: float = 0.002, decide="request_throughput", is_steady=False
):
    """An experiment whose cells take turns on a machine that is up to twice as slow."""
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(SLOWDOWNS).tolist()
    cells = [msgspec.structs.replace(CELL, gc=policy) for policy in hosts]
    of = plan(cells, rounds=ROUNDS, decide=[decide])
    rotations = beside_baseline(cells, of.baselines, lambda cell: True)
    of = msgspec.structs.replace(of, rotations=rotations, slice_steps=25)
    outcomes = {}
    for number in range(1, ROUNDS + 1):
        slowdown = 1.0 if is_steady else drawn[number - 1]
        for turn in timing_round(of, number):
            host = hosts[turn.cell.gc] * float(np.exp(rng.normal(0, noise)))
            key = trial_key(number, turn.place, turn.cell, "timing")
            outcomes[key] = result(turn.cell, host, slowdown)
    return summary(of, outcomes)


def test_a_throughputs_ratio_is_that_at_the_usual_speed_however_fast_the_machine_was():
    for seed in range(8):
        found = measured(seed)
        steady = measured(seed, noise=0.0, is_steady=True)
        for comparison, truth in zip(found.comparisons, steady.comparisons, strict=True):
            assert comparison.ratio == pytest.approx(truth.ratio, rel=0.01)
            assert comparison.mde < 0.01
            assert comparison.verdict == "better"
        assert any("times as fast in one round" in note for note in found.notes)
        assert not any("times as fast" in note for note in steady.notes)


def test_a_modelled_launch_is_as_long_on_a_slow_machine_as_on_a_fast_one():
    """Columns launch for two thirds of their host time; lists for a fifth."""
    cells = [msgspec.structs.replace(CELL, gc=gc, device_profile="any") for gc in HOST]
    timings = {
        cell: {
            number: result(cell, host, slowdown, launch=0.2)
            for number, slowdown in enumerate(SLOWDOWNS, 1)
        }
        for cell, host in zip(cells, HOST.values(), strict=True)
    }
    for cell, host in zip(cells, HOST.values(), strict=True):
        for found in at_usual_speed([cells], timings)[cell].values():
            usual = result(cell, host, 1.0, launch=0.2)
            for name in ("request_throughput", "seconds_per_request"):
                assert found.metrics[name] == pytest.approx(usual.metrics[name], rel=1e-9)


def test_equal_cells_are_told_apart_no_more_often_than_the_level_allows():
    equal = {"default": 0.3, "freeze": 0.3, "disabled": 0.3}
    verdicts = [
        comparison.verdict
        for seed in range(20)
        for comparison in measured(seed, equal, noise=0.02).comparisons
    ]
    assert sum(verdict in ("better", "worse") for verdict in verdicts) <= 2
    assert "same" in verdicts


def test_time_per_step_has_no_wait_in_it_and_stays():
    """Both sides of its ratio are slow together."""
    found = measured(1, decide="host_time_per_step")
    assert [each.ratio for each in found.comparisons] == pytest.approx([1 / 6, 1 / 3], rel=0.005)


def test_full_passes_stay_as_long_a_part_of_what_is_not_waited_for():
    cells = [msgspec.structs.replace(CELL, gc=policy) for policy in ("default", "disabled")]
    speeds = (1.0, 1.5, 0.8)
    timings = {
        cell: {n: result(cell, 0.4, slow, passes=0.2) for n, slow in enumerate(speeds, 1)}
        for cell in cells
    }
    assert slowdowns(timings.values()) == pytest.approx(dict(enumerate(speeds, 1)))
    usual = at_usual_speed([cells], timings)
    for rounds in usual.values():
        for found in rounds.values():
            assert found.metrics["request_throughput"] == pytest.approx(100 / 0.9)
            assert found.metrics["seconds_per_request"] == pytest.approx(0.009)
            assert found.metrics["gc_full_pass_share"] == pytest.approx(0.2 / 0.9)


def test_what_took_no_turns_or_has_no_wait_is_as_it_was():
    cell = msgspec.structs.replace(CELL, gc="freeze")
    alone = {1: result(cell, 0.4, 1.0), 2: result(cell, 0.4, 2.0)}
    assert at_usual_speed([], {cell: alone}) == {cell: alone}
    null = {
        number: msgspec.structs.replace(each, metrics=each.metrics | {"device_idle_share": None})
        for number, each in alone.items()
    }
    assert at_usual_speed([[cell]], {cell: null}) == {cell: null}
