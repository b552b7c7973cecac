"""Changes composed of code and full passes, on made trials whose truth is known."""

import math

import msgspec
import numpy as np
import pytest
from small import CELL, answer, plan, process, summary

from harness.experiment.composed import (
    CellTrials,
    WholeRatio,
    composed_ratio,
    contradicts,
    pass_costs,
)
from harness.experiment.plan import beside_baseline, timing_round
from harness.experiment.result import FullPasses
from harness.experiment.store import trial_key
from harness.metrics import METRICS
from harness.statistics.paired_ratio import ALPHA, paired_ratio
from harness.trial.long_run import LongRun
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
        "num_steps": 1,
    }
    made = answer(Trial(cell=CELL, schedule_path="", schedule_sha256=""), metrics)
    return msgspec.structs.replace(made, processes=[engine], window_seconds=whole)


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
    return composed_ratio(metric, pairs, CellTrials(baseline), CellTrials(candidate), 1)


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


def long_run(rate: float) -> LongRun:
    """As counted: passes that come by themselves every ``1 / rate`` windows of 100 steps."""
    every = 100 / rate
    steps = max(2000, 100 * math.ceil(4 / rate))
    passes = [int(every * (0.4 + n)) for n in range(int(steps / every))]
    return LongRun(steps_each=100, steps=steps, full_passes=passes)


def test_a_long_run_without_a_pass_may_have_missed_as_much_of_one_as_was_due():
    for due, missed in ((0.1, 0.1), (3.0, 1.0)):
        none = LongRun(steps_each=100, steps=4000, full_passes=[], due=due)
        assert none.error == pytest.approx(missed * 100 / 4000 / 2)
    one = LongRun(steps_each=100, steps=4000, full_passes=[7], due=0.1)
    assert one.error == pytest.approx(100 / 4000 / 2)


def served(
    rng, code: float, rate: float, cycles, drift, each: float = 0.4, slow: float = 0.0
) -> list[TrialResult]:
    """Windows that open at these shares of the way between two passes, 3 in 10 of them ``slow``."""
    return [
        result(
            code * float(np.exp(drift[n] + rng.normal(0, 0.005) + slow * (rng.random() < 0.3))),
            int(cycle + rate),
            each * float(np.exp(rng.normal(0, 0.05))),
        )
        for n, cycle in enumerate(cycles)
    ]


def in_the_long_run(
    seed: int,
    code: float,
    rates: tuple[float, float],
    rounds: int = 10,
    metric=HOST,
    slow: float = 0.0,
) -> WholeRatio:
    """Rounds whose windows open evenly over the cycle, the same in both cells."""
    rng = np.random.default_rng(seed)
    first = rng.random()
    cycles = [(first + n * 0.618034) % 1 for n in range(rounds)]
    drift = rng.normal(0, 0.1, rounds)
    before = served(rng, 1.0, rates[0], cycles, drift, slow=slow)
    after = served(rng, code, rates[1], cycles, drift, slow=slow)
    costs = pass_costs([*before, *after])
    sides = [
        CellTrials(results, long_run(rate) if rate else None, costs)
        for results, rate in ((before, rates[0]), (after, rates[1]))
    ]
    return composed_ratio(metric, list(zip(before, after, strict=True)), *sides, 1)


def truth(code: float, rates: tuple[float, float], each: float = 0.4) -> float:
    each *= math.exp(0.05**2 / 2)
    return (code + rates[1] * each) / (1 + rates[0] * each)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.97, 1.0, 1.03, 2.5, 5.0])
def test_a_rate_that_is_no_whole_number_of_passes_a_window_counts_as_it_is(rate):
    """Equal cells are equal, whatever part of a pass their windows have."""
    for seed in range(6):
        whole = in_the_long_run(seed, 1.0, (rate, rate))
        assert whole.ratio.ratio == pytest.approx(1, abs=0.012)
        assert whole.apart is not None
        assert whole.apart.full_passes[0].per_serving == pytest.approx(rate, rel=0.02)
        assert whole.apart.full_passes[0].added == pytest.approx(rate * 0.4, rel=0.4)


@pytest.mark.parametrize(("metric", "sign"), [(HOST, 1), (RATE, -1)])
def test_passes_that_one_cell_alone_has_count_at_their_long_run_rate(metric, sign):
    for seed in range(6):
        whole = in_the_long_run(seed, 1.1, (1.3, 0.0), metric=metric)
        assert whole.ratio.ratio == pytest.approx(truth(1.1, (1.3, 0.0)) ** sign, rel=0.04)


def test_an_error_of_the_cost_of_a_pass_cancels_where_both_have_as_many():
    equal = in_the_long_run(1, 1.0, (1.3, 1.3)).ratio
    alone = in_the_long_run(1, 1.0, (1.3, 0.0)).ratio
    assert equal.mde < 0.02
    assert alone.mde > equal.mde


def test_windows_with_other_passes_than_the_long_run_contradict_it():
    whole = in_the_long_run(0, 1.0, (1.3, 1.3))
    passes = whole.apart.full_passes[0]
    assert not contradicts(passes)
    assert contradicts(msgspec.structs.replace(passes, count=passes.count + 6))
    assert contradicts(msgspec.structs.replace(passes, count=passes.count - 6))
    assert not contradicts(msgspec.structs.replace(passes, per_serving=None, count=99))


@pytest.mark.parametrize(
    ("per_serving", "trials", "expected", "off"),
    [(1.0, 1, 1, 2.0), (0.25, 40, 10, 3.3 * (40 * 0.25 * 0.75) ** 0.5), (1.0, 100, 100, 15.0)],
    ids=["two passes", "3.3 standard errors", "15 %"],
)
def test_windows_contradict_the_long_run_from_a_bound_on(per_serving, trials, expected, off):
    for more, is_said in ((-0.05, False), (0.05, True)):
        found = FullPasses(
            count=expected + off + more,  # between two counts
            trials=trials,
            seconds=0.1,
            added=0.1,
            per_serving=per_serving,
        )
        assert contradicts(found) == is_said


def rates_of(seed: int) -> tuple[float, float]:
    """From a full pass in ten windows to five in each."""
    one, other = 10 ** np.random.default_rng([seed, 1]).uniform(-1, 0.7, 2)
    return float(one), float(other)


@pytest.mark.slow
@pytest.mark.parametrize("slow", [0.0, 0.05], ids=["one speed", "two speeds"])
def test_the_interval_covers_the_long_run_ratio(slow):
    held, wrong = [], 0
    for seed in range(400):
        rates = rates_of(seed)
        low, high = in_the_long_run(seed, 1.05, rates, 9, slow=slow).ratio.ci95
        held.append(low <= truth(1.05, rates) <= high)
        equal = in_the_long_run(seed, 1.0, (rates[0], rates[0]), 9, slow=slow)
        wrong += equal.ratio.p < ALPHA
    assert 0.92 <= np.mean(held) <= 0.98
    assert wrong <= 400 * 2 * ALPHA


@pytest.mark.slow
def test_what_a_composed_change_is_said_to_have_to_be_is_found_four_times_in_five():
    found = []
    for seed in range(300):
        rate = rates_of(seed)[0]
        said = in_the_long_run(seed, 1.0, (rate, rate), 9).ratio.mde
        code = 1 + said * (1 + rate * 0.4)
        found.append(in_the_long_run(seed + 1000, code, (rate, rate), 9).ratio.p < ALPHA)
    assert 0.73 <= np.mean(found) <= 0.87


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
    cells = [msgspec.structs.replace(CELL, batch_size=size) for size in range(8, 20)]
    of = plan(cells, rounds=7)
    rotations = beside_baseline(cells, of.baselines, lambda cell: True)
    of = msgspec.structs.replace(of, rotations=rotations, slice_steps=25)
    assert [len(rotation) for rotation in rotations] == [10, 3]
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
    assert [each.verdict for each in result.comparisons] == ["same"] * 10 + ["worse"]
    assert len(result.cells) == len(cells)
    assert [each.samples for each in result.cells] == [7] * len(cells)
