"""Where verdicts tip: each threshold of the statistics just met, and just not."""

import math

import numpy as np
import pytest
from scipy import stats

from harness.report.power import detects, what_it_takes
from harness.statistics.agreement import disagreement
from harness.statistics.median_interval import median_interval
from harness.statistics.paired_ratio import (
    Ratio,
    holm,
    is_precise,
    minimum_detectable_effect,
    paired_ratio,
)
from harness.statistics.power import rounds_needed
from harness.statistics.stalls import Stalls, compare_stalls
from harness.statistics.verdict import decide

STEPS = 500


def ratio(of: float = 1.5, low: float = 1.25, high: float = 1.75, p: float = 0.0, rounds: int = 7):
    return Ratio(of, (low, high), p, mde=0.02, sd_log=0.02, rounds=rounds)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (ratio(p=0.01499), "worse"),
        (ratio(p=0.015), "inconclusive"),
        (ratio(rounds=6), "inconclusive"),
        (ratio(rounds=7), "worse"),
        # Of a tolerance of a half, three quarters are 0.375.
        (ratio(1.375), "worse"),
        (ratio(math.nextafter(1.375, 1)), "inconclusive"),
        (ratio(0.625, 0.25), "better"),
        (ratio(math.nextafter(0.625, 1), 0.25), "inconclusive"),
        # An interval within it is the same, whatever the p-value.
        (ratio(1.0, 0.5, 1.5), "same"),
        (ratio(1.375, math.nextafter(0.5, 0), 1.5), "worse"),
        (ratio(1.375, 0.5, math.nextafter(1.5, 2)), "worse"),
    ],
)
def test_a_verdict_tips_where_it_says(found, verdict):
    assert decide([found], "lower", tolerance=0.5) == [verdict]


def test_three_pairs_give_an_interval_and_two_give_none():
    assert paired_ratio([1.0, 1.0, 1.0], [2.0, 2.1, 2.2]).rounds == 3
    with pytest.raises(ValueError, match="an interval needs 3"):
        paired_ratio([1.0, 1.0], [2.0, 2.1])


def test_precision_is_met_by_just_its_half_width():
    assert is_precise(ratio(1.0, 0.75, 1.25), 0.25)
    assert not is_precise(ratio(1.0, 0.75, 1.25), math.nextafter(0.25, 0))
    assert not is_precise(ratio(1.0, 0.75, 1.25, rounds=6), 0.25)


def test_the_detectable_effect_is_that_of_80_percent_power_at_the_level():
    wanted = stats.t.ppf(1 - 0.015 / 6, 13) + stats.t.ppf(0.8, 13)
    fitted = 1.08 + (26 + 7.5 * math.log(3)) / 14**2
    found = minimum_detectable_effect(0.02, 14, comparisons=3)
    assert found == pytest.approx(math.expm1(fitted * wanted * 0.02 / math.sqrt(14)), rel=1e-9)


def test_half_is_the_most_that_is_said_to_be_detectable():
    assert (detects(0.5), detects(0.501)) == ("±50.0 %", "> ±50 %")
    assert "detect changes from 50.0 %" in what_it_takes(7, 0.5, 0.02)
    assert "detect no change below 50 %" in what_it_takes(7, 0.501, 0.02)


def test_two_hundred_are_the_most_rounds_that_are_said():
    unit = math.log1p(minimum_detectable_effect(1.0, 200)) / math.log1p(0.02)

    def mde(spread: float) -> float:
        """What seven rounds detect: at a spread of 1 two hundred detect 2 %."""
        return minimum_detectable_effect(spread / unit, 7)

    assert what_it_takes(7, mde(0.999), 0.02).endswith("takes about 200")
    assert "takes more than 200" in what_it_takes(7, mde(1.001), 0.02)
    assert rounds_needed(0.02, 7, math.inf) == 201


@pytest.mark.parametrize(("median_seconds", "least"), [(1e-4, 5e-4), (2e-3, 1e-3)])
def test_a_step_stalls_that_is_longer_by_more_than_the_least(median_seconds, least):
    """Half a millisecond, or half a step where that is more."""

    def stalls(longer: float) -> int:
        before, after = np.full((2, STEPS), median_seconds)
        before[7], after[7] = 0.0, longer
        return compare_stalls([(before, after)], 25).after

    assert stalls(least) == 0
    assert stalls(math.nextafter(least, 1)) == 1


def stalled(share: float, reach: float, rounds: int = 7) -> Stalls:
    return Stalls(0, 1, 0.0, 1e-3, STEPS, rounds, share, (share - reach, share + reach), p=0.0)


@pytest.mark.parametrize(
    ("found", "p", "verdict"),
    [
        (stalled(0.5, 0.1), 0.01499, "worse"),
        (stalled(-0.5, 0.1), 0.01499, "better"),
        (stalled(0.5, 0.1), 0.015, "inconclusive"),
        (stalled(0.5, 0.1, rounds=6), 0.0, "inconclusive"),
        (stalled(0.0, 0.125), 0.015, "same"),
        (stalled(0.0, math.nextafter(0.125, 1)), 0.015, "inconclusive"),
        (stalled(0.0, 0.125, rounds=6), 0.015, "inconclusive"),
    ],
)
def test_stalls_tip_at_the_level_and_at_half_the_tolerance(found, p, verdict):
    assert found.verdict(p, tolerance=0.25) == verdict


def test_six_samples_have_an_interval_and_five_have_none():
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0]) is None
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == (1.0, 6.0)


def test_nodes_disagree_of_which_two_have_two_blocks():
    assert disagreement([[0.1, 0.2], [0.3]]) is None
    assert disagreement([[0.1, 0.2], [0.3, 0.4]]) is not None


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ([0.25], [0.25]),
        ([0.125, 0.0625], [0.125, 0.125]),
        ([0.0625, 0.125, 0.125], [0.1875, 0.25, 0.25]),
        ([0.0625, 0.078125, 0.25], [0.1875, 0.1875, 0.25]),
        ([0.5, 0.75], [1.0, 1.0]),
    ],
)
def test_a_family_is_as_large_as_it_is(p_values, adjusted):
    assert holm(p_values) == adjusted
