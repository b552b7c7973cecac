import math

import numpy as np
import pytest
from examples import every, examples
from hypothesis import given
from hypothesis import strategies as st
from noise_model import Noise, ratios, share_with
from scipy import stats

from harness.statistics.noise_floor import noise_floor
from harness.statistics.paired_ratio import (
    ALPHA,
    Ratio,
    holm,
    is_precise,
    minimum_detectable_effect,
    paired_ratio,
)
from harness.statistics.percentile import percentile_or_none
from harness.statistics.robust_location import fit, likelihood_ratio, location_interval, reference
from harness.statistics.verdict import decide

REPETITIONS = 100 // every()
seeds = st.integers(0, 2**32 - 1)


def made_up(ratio: float, low: float, high: float, p: float, rounds: int = 14) -> Ratio:
    return Ratio(ratio, (low, high), p, mde=0.02, sd_log=0.02, rounds=rounds)


# The verdicts as a whole, on a machine with drift and slow trials.


@pytest.mark.parametrize("rounds", [7, 14])
def test_equal_cells_are_rarely_told_apart(rounds: int) -> None:
    wrong = share_with({"better", "worse"}, Noise(0.015, 0.05), rounds, [0.0], REPETITIONS)
    assert round(wrong * REPETITIONS) <= max(1, 0.02 * REPETITIONS)


def test_a_slow_down_of_3_percent_is_found_in_14_rounds() -> None:
    assert share_with({"worse"}, Noise(0.0125, 0.05), 14, [0.03], REPETITIONS) >= 0.95


def test_8_equal_candidates_are_one_family() -> None:
    assert (
        share_with({"better", "worse"}, Noise(0.015, 0.05), 7, [0.0] * 8, REPETITIONS // 4) <= 0.04
    )


# P-values beyond what resampling can tell.


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [7, 9])
def test_a_doubling_is_found_among_320_equal_cells(rounds: int) -> None:
    rng = np.random.default_rng(rounds)
    before = np.exp(0.015 * rng.standard_normal(rounds))
    others = [
        paired_ratio(before, before * np.exp(0.02 * rng.standard_normal(rounds)))
        for _ in range(320)
    ]
    doubled = paired_ratio(before, 2 * before * np.exp(0.02 * rng.standard_normal(rounds)))
    verdicts = decide([doubled, *others], "lower")
    assert verdicts[0] == "worse"
    assert not {"better", "worse"} & set(verdicts[1:])


@pytest.mark.parametrize("size", [3, 7, pytest.param(64, marks=pytest.mark.slow)])
def test_p_values_fall_with_the_ratio_and_have_no_step(size: int) -> None:
    of = reference(size)
    ratios = np.linspace(0, 4 * float(of.likelihood_ratios[-1]), 4_000)
    p = np.array([of.p_value(float(each)) for each in ratios])
    assert (np.diff(p) <= 0).all()
    assert p[0] == 1
    assert 1e-9 <= p[-1] < 1e-7
    # Where few draws are left to count, no neighbour is less than half of the one before.
    few = p < 20 / 20_001
    assert (p[1:][few[1:]] >= 0.45 * p[:-1][few[1:]]).all()


@pytest.mark.slow
@pytest.mark.parametrize(("size", "draws"), [(3, 2_000_000), (7, 1_000_000)])
def test_equal_samples_are_as_far_out_no_more_often_than_their_p_values_say(size, draws):
    """Down to a tenth of what counting alone could tell."""
    of, found = reference(size), []
    draws //= every()
    for part in range(draws // 20_000):
        x = np.random.default_rng([size, part]).standard_normal((20_000, size))
        found.append(np.sort(likelihood_ratio(x))[-2_000:])
    ratios = np.sort(np.concatenate(found))[::-1]
    for share in (1e-3, 1e-4, 5e-5, 2e-5):
        rank = int(share * draws)
        sure = 1 - 3 / math.sqrt(rank)  # of a count of so many
        assert of.p_value(float(ratios[rank])) >= share * sure, share


# Location and interval.


@examples(30)
@given(seeds, st.integers(3, 9), st.floats(0.1, 10), st.floats(-5, 5))
def test_interval_moves_and_stretches_with_its_data(
    seed: int, size: int, stretch: float, shift: float
) -> None:
    x = np.random.default_rng(seed).standard_t(3, size)
    low, high = location_interval(x)
    moved = location_interval(stretch * x + shift)
    assert moved == pytest.approx((stretch * low + shift, stretch * high + shift), abs=1e-3)


@pytest.mark.parametrize("size", [3, 7, 14])
def test_interval_ends_where_the_p_value_crosses_5_percent(size: int) -> None:
    x = np.random.default_rng(size).normal(0.01, 0.02, size)
    low, high = location_interval(x)
    null = reference(size)
    for bound, inward in ((low, 1e-4), (high, -1e-4)):
        assert null.p_value(float(likelihood_ratio(x, bound - inward))) < 0.05
        assert null.p_value(float(likelihood_ratio(x, bound + inward))) > 0.05


def test_without_outliers_the_p_value_is_near_that_of_a_t_test() -> None:
    x = np.random.default_rng(0).normal(0.01, 0.02, (200, 14))
    null = reference(14)
    ours = [null.p_value(ratio) for ratio in likelihood_ratio(x)]
    t_test = stats.ttest_1samp(x, 0.0, axis=-1).pvalue
    assert stats.spearmanr(ours, t_test).statistic > 0.9
    assert np.median(np.abs(ours - t_test)) < 0.03


def test_one_outlier_moves_the_estimate_and_widens_the_interval_little() -> None:
    clean = np.random.default_rng(1).normal(0.0, 0.01, 14)
    spoilt = clean.copy()
    spoilt[3] += 0.3
    low, high = location_interval(spoilt)
    assert abs(float(fit(spoilt).location) - float(fit(clean).location)) < 0.003
    of_the_mean = 2 * stats.t.ppf(0.975, 13) * stats.sem(spoilt)
    assert high - low < of_the_mean / 3


def test_fit_finds_the_peak_of_the_likelihood() -> None:
    x = np.random.default_rng(2).normal(0.3, 1.0, 11)
    x[:2] += 9.0
    best = fit(x)

    def log_likelihood(location: float, scale: float) -> float:
        density = 0.9 * stats.norm.pdf(x, location, scale)
        return float(np.log(density + 0.1 * stats.norm.pdf(x, location, 10 * scale)).sum())

    peak = log_likelihood(float(best.location), float(best.scale))
    for step in (-0.01, 0.01):
        assert log_likelihood(float(best.location) + step, float(best.scale)) < peak
        assert log_likelihood(float(best.location), float(best.scale) + step) < peak


# Ratios.


@examples(30)
@given(seeds, st.integers(3, 9))
def test_swapping_the_cells_inverts_the_ratio(seed: int, rounds: int) -> None:
    first, second = np.exp(np.random.default_rng(seed).standard_t(3, (2, rounds)))
    one, other = paired_ratio(first, second), paired_ratio(second, first)
    assert one.ratio == pytest.approx(1 / other.ratio, rel=1e-3)
    assert one.ci95 == pytest.approx((1 / other.ci95[1], 1 / other.ci95[0]), rel=1e-2)
    assert one.ci95[0] <= one.ratio <= one.ci95[1]
    assert one.p == pytest.approx(other.p, abs=2e-3)


def test_rounds_without_a_partner_are_dropped() -> None:
    nan = math.nan
    gappy = paired_ratio([1.0, nan, 1.1, 1.2, 1.0, 1.3], [2.0, 5.0, 2.3, nan, 2.1, 2.4])
    assert gappy == paired_ratio([1.0, 1.1, 1.0, 1.3], [2.0, 2.3, 2.1, 2.4])


def test_drift_shared_by_a_round_cancels() -> None:
    drift = np.exp(np.linspace(0, 2, 9))
    ratio = paired_ratio(drift, 1.03 * drift)
    assert ratio.ratio == pytest.approx(1.03)
    assert ratio.ci95 == pytest.approx((1.03, 1.03))
    assert decide([ratio], "higher") == ["better"]


@pytest.mark.parametrize(
    ("baseline", "candidate", "message"),
    [
        ([1.0, 2.0], [1.0], "Baseline has 2 rounds and candidate 1"),
        ([1.0, math.nan, 1.0], [1.0, 1.0, 1.0], "Only 2 rounds have a sample of both"),
        ([1.0, 0.0, 1.0], [1.0, 1.0, 1.0], "samples above 0"),
    ],
)
def test_what_cannot_be_compared_is_said(
    baseline: list[float], candidate: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        paired_ratio(baseline, candidate)


# Verdicts.


@pytest.mark.parametrize(
    ("ratio", "if_higher_is_better", "if_lower_is_better"),
    [
        (made_up(1.10, 1.05, 1.15, 0.001), "better", "worse"),
        (made_up(0.90, 0.85, 0.95, 0.001), "worse", "better"),
        (made_up(1.10, 0.95, 1.25, 0.10), "inconclusive", "inconclusive"),
        (made_up(1.005, 1.001, 1.009, 0.001), "same", "same"),
        (made_up(1.014, 1.007, 1.021, 0.001), "inconclusive", "inconclusive"),
        (made_up(1.10, 1.05, 1.15, 0.001, rounds=6), "inconclusive", "inconclusive"),
        (made_up(1.00, 0.99, 1.01, 0.9, rounds=6), "inconclusive", "inconclusive"),
    ],
)
def test_verdict(ratio: Ratio, if_higher_is_better: str, if_lower_is_better: str) -> None:
    assert decide([ratio], "higher") == [if_higher_is_better]
    assert decide([ratio], "lower") == [if_lower_is_better]


def test_a_finding_has_to_stand_beside_the_others() -> None:
    finding = made_up(1.10, 1.05, 1.15, 0.01)
    nothing = made_up(1.00, 0.90, 1.10, 0.9)
    assert decide([finding], "lower") == ["worse"]
    assert decide([finding, nothing, nothing], "lower") == ["inconclusive"] * 3


def test_a_wider_tolerance_makes_more_the_same() -> None:
    ratio = made_up(1.03, 1.02, 1.04, 0.001)
    assert decide([ratio], "lower", tolerance=0.02) == ["worse"]
    assert decide([ratio], "lower", tolerance=0.05) == ["same"]


def test_a_metric_without_direction_gets_no_verdict() -> None:
    with pytest.raises(ValueError, match="'neither'"):
        decide([made_up(1, 1, 1, 1)], "neither")  # type: ignore[arg-type]


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_rejects_what_its_step_down_rule_rejects(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    rejected = 0
    for rank, p in enumerate(sorted(p_values)):
        if p * (len(p_values) - rank) >= ALPHA:
            break
        rejected += 1
    assert sum(p < ALPHA for p in adjusted) == rejected
    assert all(a >= p for a, p in zip(adjusted, p_values, strict=True))


# Sizes.


@pytest.mark.parametrize(("q", "least"), [(99, 662), (99.9, 6636), (90, 64), (1, 662), (50, 1)])
def test_percentile_needs_samples_beyond_it(q: float, least: int) -> None:
    values = np.random.default_rng(0).permutation(least).astype(float)
    assert percentile_or_none(values[:-1], q) is None
    assert percentile_or_none(values, q) == pytest.approx(np.percentile(values, q))


def test_the_least_sizes_are_those_of_the_binomial() -> None:
    for q, least in ((0.99, 662), (0.999, 6636)):
        assert stats.binom.cdf(1, least, 1 - q) <= 0.01 < stats.binom.cdf(1, least - 1, 1 - q)


@pytest.mark.slow
def test_where_noise_has_no_outliers_a_run_finds_more_than_it_says() -> None:
    noise = Noise(0.02, 0.0)
    effect = minimum_detectable_effect(0.02 * math.sqrt(2), 14)
    found = [ratios(noise, 14, [effect], seed)[0].p < ALPHA for seed in range(300)]
    assert 0.85 <= np.mean(found) <= 0.97


def test_precision_is_relative_to_the_ratio() -> None:
    narrow = made_up(2.0, 1.98, 2.02, 0.001)
    assert is_precise(narrow, 0.011)
    assert not is_precise(narrow, 0.009)
    assert not is_precise(narrow._replace(rounds=6), 0.011)


@pytest.mark.slow
def test_noise_floor_tells_the_noise_it_was_made_of() -> None:
    rng = np.random.default_rng(5)
    drift = np.exp(0.05 * rng.standard_normal(60))
    seconds = np.exp(0.01 * rng.standard_normal((60, 3))) * drift[:, None]
    floor = noise_floor(seconds)
    assert floor.sd_log_ratio == pytest.approx(0.01 * math.sqrt(2), rel=0.15)
    assert floor.trial_cv == pytest.approx(math.hypot(0.05, 0.01), rel=0.3)
    assert floor.mde[7] > floor.mde[14] > floor.mde[28]
    assert (floor.cells, floor.rounds) == (3, 60)
    with pytest.raises(ValueError, match="2 equal cells"):
        noise_floor([[1.0], [1.0]])
