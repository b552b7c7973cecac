"""The check of arrivals: says what they are, finds what they are not, and never cries wolf."""

import math

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from workloads.arrival_check import check_arrivals, deviations, expected_dispersion
from workloads.recipe.arrivals import Constant, Gamma, Poisson, Ramp

SEEDS = st.integers(0, 2**32)


def sample(process, n: int, seed: int = 0):
    return process.sample(np.random.default_rng(seed), n)


@pytest.mark.parametrize(
    ("process", "cv"), [(Constant(200), 0), (Poisson(200), 1), (Gamma(200, 0.5), math.sqrt(2))]
)
def test_the_figures_are_those_of_the_processes(process, cv):
    check = check_arrivals(sample(process, 50_000))
    assert check.num_gaps == 49_999
    assert check.mean_gap_seconds == pytest.approx(1 / 200, rel=0.03)
    assert check.gap_cv == pytest.approx(cv, abs=0.03)
    expected = expected_dispersion(cv, check.window_gaps)
    assert check.dispersion == pytest.approx(expected, rel=0.1, abs=1e-6)
    if cv:
        assert check.lag1_correlation == pytest.approx(0, abs=0.02)
    else:
        assert check.lag1_correlation is None, "equal gaps have none"


@given(
    process=st.one_of(
        st.builds(Constant, st.floats(0.01, 1e5)),
        st.builds(Poisson, st.floats(0.01, 1e5)),
        st.builds(Gamma, st.floats(0.01, 1e5), st.floats(0.1, 100)),
    ),
    n=st.integers(2, 3000),
    seed=SEEDS,
)
@examples(300)
def test_what_is_as_asked_for_is_never_called_otherwise(process, n, seed):
    assert deviations(check_arrivals(sample(process, n, seed)), process.gap_cv) == []


@given(first=st.floats(0, 50), last=st.floats(0.1, 50), seed=SEEDS)
def test_a_ramp_passes_by_its_own_clock_and_not_by_the_walls(first, last, seed):
    ramp = Ramp(first, last, 60)
    times = sample(ramp, 2000, seed)
    assert deviations(check_arrivals(ramp.stationary(times)), 1.0) == []
    steep = sample(Ramp(1, 100, 60), 2000, seed)
    assert any("dispersion" in words for words in deviations(check_arrivals(steep), 1.0))


@given(seed=SEEDS)
def test_another_process_than_asked_for_is_found(seed):
    """What load generators were found to do: constant that is Poisson, Poisson that is not."""
    poisson, n = check_arrivals(sample(Poisson(100), 2000, seed)), 2000
    assert "CV" in deviations(poisson, 0.0)[0]
    assert "CV" in deviations(poisson, math.sqrt(2))[0]
    assert "CV" in deviations(check_arrivals(sample(Constant(100), n, seed)), 1.0)[0]
    assert "CV" in deviations(check_arrivals(sample(Gamma(100, 0.25), n, seed)), 1.0)[0]


@given(seed=SEEDS)
def test_four_workers_with_one_seed_are_found(seed):
    """guidellm's poisson gave each worker the same seed: every arrival comes four at a time."""
    times = np.repeat(sample(Poisson(25), 1000, seed), 4)
    assert any("CV" in words for words in deviations(check_arrivals(times), 1.0))


@given(seed=SEEDS)
def test_gaps_that_follow_each_other_are_found_by_order_alone(seed):
    """The same gaps in another order have the same CV."""
    gaps = np.diff(sample(Poisson(100), 4001, seed))
    slow_then_fast = np.concatenate([np.sort(part) for part in np.split(gaps, 40)])
    found = deviations(check_arrivals(np.cumsum(slow_then_fast)), 1.0)
    assert any("lag-1" in words for words in found)
    assert not any("CV" in words for words in found)


def test_one_pair_of_long_gaps_is_no_correlation():
    gaps = np.ones(1000) + np.random.default_rng(0).normal(0, 0.01, 1000)
    gaps[500:502] = 1000
    assert abs(check_arrivals(np.cumsum(gaps)).lag1_correlation) < 0.1


@given(times=st.lists(st.floats(0, 1e6), max_size=40), seed=SEEDS)
def test_order_and_place_do_not_matter_and_nothing_breaks(times, seed):
    check = check_arrivals(times)
    shuffled = np.random.default_rng(seed).permutation(np.array(times))
    assert check_arrivals(shuffled) == check
    assert deviations(check, 1.0) == [], "too few to judge"


@pytest.mark.parametrize("times", [[], [3.0], [0.0] * 500])
def test_where_there_are_no_gaps_nothing_is_said(times):
    check = check_arrivals(times)
    assert (check.gap_cv, check.lag1_correlation, check.dispersion) == (None, None, None)
    assert deviations(check, 1.0) == []


def test_lag1_is_spearmans():
    from scipy.stats import spearmanr

    gaps = np.random.default_rng(1).integers(1, 6, 500).astype(float)  # many ties
    found = check_arrivals(np.cumsum(gaps)).lag1_correlation
    gaps = gaps[1:]  # the first arrival is where the first gap ends
    # Ranked once over all gaps, not once for each side: alike but for the ends.
    assert found == pytest.approx(spearmanr(gaps[:-1], gaps[1:]).statistic, abs=0.005)
