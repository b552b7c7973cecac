"""Changes whose full passes stand apart, on made trials whose truth is known."""

import msgspec
import numpy as np
import pytest
from small import CELL, answer, plan, process, summary

from harness.experiment.apart import WholeRatio, ratio_in_parts
from harness.experiment.plan import beside_baseline, timing_round
from harness.experiment.store import trial_key
from harness.metrics import METRICS
from harness.statistics.paired_ratio import ALPHA, paired_ratio
from harness.trial.spec import Trial, TrialResult

HOST = METRICS["host_time_per_step"]
RATE = METRICS["request_throughput"]


def result(seconds: float, passes: int, each: float) -> TrialResult:
    """A trial of 1 s of code at ``seconds`` 1, and of full passes of ``each`` second."""
    engine = msgspec.structs.replace(
        process((9, 3, passes)), pause_seconds=(0.0, 0.0, passes * each)
    )
    whole = seconds + passes * each
    metrics = {
        "host_time_per_step": whole,
        "request_throughput": 1 / whole,
        "gc_full_pass_host_share": passes * each / whole,
        "gc_full_pass_share": passes * each / whole,
    }
    made = answer(Trial(cell=CELL, schedule_path="", schedule_sha256=""), metrics)
    return msgspec.structs.replace(made, processes=[engine])


def cell(rng: np.random.Generator, code: float, chance: float, each: float, drift, rounds: int):
    """Trials of a cell: code of 0.5 % noise on a machine's drift, a full pass or none."""
    return [
        result(
            code * float(np.exp(drift[n] + rng.normal(0, 0.005))),
            int(rng.random() < chance),
            each * float(np.exp(rng.normal(0, 0.05))),
        )
        for n in range(rounds)
    ]


def compared(seed: int, code: float, chances: tuple[float, float], metric=HOST) -> WholeRatio:
    """Seven rounds of two cells; the baseline has five times as many trials in all."""
    rng = np.random.default_rng(seed)
    drift = rng.normal(0, 0.1, 35)
    baseline = cell(rng, 1.0, chances[0], 0.4, drift, 35)
    candidate = cell(rng, code, chances[1], 0.4, drift, 7)
    pairs = list(zip(baseline[:7], candidate, strict=True))
    return ratio_in_parts(metric, pairs, baseline, candidate, 1)


def test_without_full_passes_it_is_the_paired_ratio():
    whole = compared(0, 1.1, (0.0, 0.0))
    rng = np.random.default_rng(0)
    drift = rng.normal(0, 0.1, 35)
    before, after = (
        [r.metrics["host_time_per_step"] for r in cell(rng, code, 0.0, 0.4, drift, n)]
        for code, n in ((1.0, 35), (1.1, 7))
    )
    assert whole == WholeRatio(paired_ratio(before[:7], after), None)


@pytest.mark.parametrize("metric", [HOST, RATE])
def test_the_code_is_known_to_two_percent_though_a_full_pass_adds_forty(metric):
    for seed in range(8):
        whole = compared(seed, 1.1, (0.7, 0.0), metric)
        code = whole.apart.code
        expected = 1.1 if metric is HOST else 1 / 1.1
        assert code.ratio == pytest.approx(expected, rel=0.015)
        assert code.mde < 0.025
        before, after = whole.apart.full_passes
        assert (before.trials, after.trials, after.count) == (35, 7, 0)
        assert before.seconds == pytest.approx(0.4, rel=0.05)


def test_the_whole_holds_code_and_full_passes_and_its_interval_the_truth():
    truth = 1.1 * (1 + 0.5 * 0.4 / 1.1) / (1 + 0.7 * 0.4)
    held = [
        low <= truth <= high
        for seed in range(100)
        for low, high in [compared(seed, 1.1, (0.7, 0.5)).ratio.ci95]
    ]
    assert np.mean(held) > 0.88  # few passes are not normal: 0.95 is what many would give


@pytest.mark.slow
def test_equal_cells_with_full_passes_are_told_apart_in_no_more_than_the_level():
    told = sum(compared(seed, 1.0, (0.5, 0.5)).ratio.p < ALPHA for seed in range(200))
    assert told <= 200 * 2 * ALPHA


def test_both_directions_say_the_same():
    time, rate = (compared(3, 0.9, (1.0, 0.3), metric) for metric in (HOST, RATE))
    assert rate.ratio.ratio == pytest.approx(1 / time.ratio.ratio)
    assert rate.ratio.p == pytest.approx(time.ratio.p)


def test_a_cell_is_paired_with_the_copy_of_the_baseline_beside_it():
    """The second rotation of each round runs on a machine that is slower by half."""
    cells = [msgspec.structs.replace(CELL, batch_size=size) for size in range(8, 18)]
    of = plan(cells, rounds=7)
    rotations = beside_baseline(cells, of.baselines, lambda cell: True)
    of = msgspec.structs.replace(of, rotations=rotations, slice_steps=25)
    assert [len(rotation) for rotation in rotations] == [8, 3]
    outcomes = {}
    rng = np.random.default_rng(0)
    for number in range(1, 8):
        for turn in timing_round(of, number):
            slow = 1.5 if turn.rotation else 1.0
            seconds = slow * (1.1 if turn.cell == cells[-1] else 1.0) * rng.normal(1, 0.004)
            metrics = {"host_time_per_step": seconds}
            trial = Trial(cell=turn.cell, schedule_path="", schedule_sha256="")
            key = trial_key(number, turn.place, turn.cell, "timing")
            outcomes[key] = answer(trial, metrics)
    result = summary(of, outcomes)
    assert [each.verdict for each in result.comparisons] == ["same"] * 8 + ["worse"]
    assert len(result.cells) == len(cells)
    assert [each.samples for each in result.cells] == [7] * len(cells)
