"""Whether what a run says to detect is detected: four times in five, by simulation."""

import math

import numpy as np
import pytest

from harness.statistics.paired_ratio import ALPHA, minimum_detectable_effect
from harness.statistics.robust_location import fit, likelihood_ratio, reference

DRAWS = 2000


def samples(rng: np.random.Generator, rounds: int) -> np.ndarray:
    """Log ratios ``[DRAWS, rounds]``: normal, and one in ten of them ten times as far out."""
    drawn = rng.standard_normal((DRAWS, rounds))
    return np.where(rng.random((DRAWS, rounds)) < 0.1, 10 * drawn, drawn)


def power(rounds: int, comparisons: int) -> float:
    """Share of runs in which is found what another run of as many rounds says to detect."""
    rng = np.random.default_rng(rounds)
    null = reference(rounds)
    said = [
        math.log1p(minimum_detectable_effect(0.01 * spread, rounds, comparisons))
        for spread in fit(samples(rng, rounds)).scale / null.scale
    ]
    moved = 0.01 * samples(rng, rounds) + np.array(said)[:, None]
    level = ALPHA / comparisons
    return float(np.mean([null.p_value(each) < level for each in likelihood_ratio(moved)]))


@pytest.mark.slow
@pytest.mark.parametrize("comparisons", [1, 4, 9, 14])
@pytest.mark.parametrize("rounds", [7, 8, 10, 14, 20, 28])
def test_what_is_said_to_be_detected_is_found_four_times_in_five(rounds, comparisons):
    assert 0.75 <= power(rounds, comparisons) <= 0.85


def test_few_rounds_find_it_as_often_as_many_do():
    assert 0.75 <= power(7, 1) <= 0.85
    assert 0.75 <= power(8, 9) <= 0.85
