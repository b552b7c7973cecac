"""How often a whole experiment is wrong about equal cells, and how often it finds 3 %.

The real rounds, samples, pairs and verdicts; only the trials' times are made up, with the noise
of `noise_model`: 1.25 % a trial, a twentieth of them slow, and a drift that a round shares.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import pytest
from examples import every
from noise_model import Noise, simulate
from small import CELL, Calls, MemoryStore, answer, plan, summary

from harness.experiment.plan import timing_round
from harness.experiment.rounds import Precision, Rounds
from harness.trial.spec import Trial, TrialResult

REPETITIONS = 100 // every()
NOISE = Noise(trial_sd=0.0125, outlier_share=0.05)
EQUAL = [msgspec.structs.replace(CELL, copy=copy) for copy in (0, 1)]


def verdicts(rounds: int, effect: float) -> Counter[str]:
    """What `REPETITIONS` experiments, seeds 0 and up, say of a cell that is slower by an effect."""
    said: Counter[str] = Counter()
    for seed in range(REPETITIONS):
        of = plan(EQUAL, rounds=rounds, seed=seed)
        seconds = simulate(NOISE, rounds, [effect], seed)
        number_of = {next(timing_round(of, n)).seed: n for n in range(1, rounds + 1)}

        def measure(
            trials: Sequence[Trial], seconds=seconds, number_of=number_of
        ) -> Iterator[TrialResult]:
            for trial in trials:
                sample = seconds[trial.cell.copy, number_of[trial.seed] - 1]
                yield answer(trial, {"host_time_per_step": float(sample) / 1000})

        under_way = Rounds(of, MemoryStore(), Calls(measure), lambda turn, outcome: None)
        under_way.run(lambda outcomes, of=of: summary(of, outcomes), Precision(0, 0))
        (comparison,) = summary(of, under_way.outcomes).comparisons
        assert (comparison.baseline, comparison.candidate) == ("0", "1")
        assert comparison.rounds == rounds
        said[comparison.verdict] += 1
    return said


@pytest.mark.parametrize("rounds", [7, 14])
def test_equal_cells_are_called_different_at_most_twice_in_a_hundred(rounds, record_property):
    said = verdicts(rounds, effect=0.0)
    record_property("verdicts", dict(said))
    print(f"A/A, {rounds} rounds: {dict(said)}")
    assert said["better"] + said["worse"] <= 2
    assert said.total() == REPETITIONS


def test_three_percent_is_found_in_fourteen_rounds(record_property):
    said = verdicts(14, effect=0.03)
    record_property("verdicts", dict(said))
    print(f"3 % slower, 14 rounds: {dict(said)}")
    assert said["worse"] >= 0.95 * REPETITIONS
    assert said["better"] == 0


def test_three_percent_faster_is_better_and_not_worse():
    said = verdicts(14, effect=1 / 1.03 - 1)
    assert said["better"] >= 0.95 * REPETITIONS
    assert said["worse"] == 0


def test_fewer_than_seven_rounds_give_no_verdict_however_clear():
    assert verdicts(6, effect=0.5) == {"inconclusive": REPETITIONS}


def test_the_noise_here_is_of_the_size_it_says():
    steady = Noise(trial_sd=0.0125, outlier_share=0.0, drift_sd=0.0)
    assert np.log(simulate(steady, 4000, [], 0)).std() == pytest.approx(0.0125, rel=0.05)
