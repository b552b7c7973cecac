"""What the collector costs altogether has an interval, paired by round like a verdict."""

import math

import msgspec
import numpy as np
import pytest
from examples import every
from small import CELL, answer, plan, summary

from harness.experiment.plan import timing_round
from harness.experiment.result import MetricSamples
from harness.experiment.store import trial_key
from harness.format import percent
from harness.report.summary import cells_table
from harness.statistics.paired_ratio import paired_ratio
from harness.trial.spec import Trial

CELLS = [msgspec.structs.replace(CELL, gc=gc) for gc in ("default", "disabled")]


def measured(seconds: np.ndarray):
    """``seconds`` ``[2, rounds]``: host time with the collector and without."""
    of = plan(CELLS, rounds=seconds.shape[1])
    outcomes = {}
    for number in range(1, of.rounds + 1):
        for turn in timing_round(of, number):
            asked = Trial(cell=turn.cell, schedule_path="", schedule_sha256="", seed=turn.seed)
            sample = float(seconds[int(turn.cell.gc == "disabled"), number - 1])
            key = trial_key(number, turn.place, turn.cell, "timing")
            outcomes[key] = answer(asked, {"host_time_per_step": sample})
    return summary(of, outcomes)


def effect(seconds: np.ndarray) -> MetricSamples:
    return measured(seconds).cells[0].metrics["gc_effect"]


def noisy(rounds: int, cost: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    drift = 0.05 * rng.standard_normal(rounds)
    return np.exp(drift + 0.01 * rng.standard_normal((2, rounds))) * [[1 + cost], [1.0]]


def test_estimate_and_interval_are_those_of_the_paired_ratio() -> None:
    for seed in range(20):
        seconds = noisy(7, 0.25, seed)
        found, ratio = effect(seconds), paired_ratio(seconds[1], seconds[0])
        assert found.estimate == pytest.approx(ratio.ratio - 1)
        assert found.ci95 == pytest.approx([end - 1 for end in ratio.ci95])


def test_it_holds_the_true_cost_as_often_as_it_says() -> None:
    repetitions = 200 // every()
    held = 0
    for seed in range(repetitions):
        low, high = effect(noisy(7, 0.1, seed)).ci95
        held += low <= 0.1 <= high
    assert held / repetitions >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / repetitions)


def test_two_rounds_have_none_and_no_other_metric_has() -> None:
    few = effect(noisy(2, 0.1, 0))
    assert (few.estimate, few.ci95) == (None, None)
    cells = measured(noisy(7, 0.1, 0)).cells
    assert cells[0].metrics["host_time_per_step"].ci95 is None
    assert "gc_effect" not in cells[1].metrics


def test_the_table_shows_it() -> None:
    result = measured(noisy(7, 0.25, 1))
    found = result.cells[0].metrics["gc_effect"]
    reach = max(found.ci95[1] - found.estimate, found.estimate - found.ci95[0])
    ((with_collector, without),) = cells_table(result).groups
    assert with_collector[-1] == f"+{100 * found.estimate:.1f} % ±{percent(reach)[:-2]}"
    assert without[-1] == "–"
