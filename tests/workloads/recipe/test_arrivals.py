import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.recipe.arrivals import (
    AllAtOnce,
    ClosedLoop,
    Constant,
    Gamma,
    Poisson,
    Ramp,
    parse_arrivals,
)

RATES = st.floats(1e-3, 1e9)
PROCESSES = st.one_of(
    st.builds(Constant, RATES),
    st.builds(Poisson, RATES),
    st.builds(Gamma, RATES, st.floats(0.05, 50)),
    st.builds(Ramp, st.just(0.0) | RATES, RATES, st.floats(1e-3, 1e6)),
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(process=PROCESSES, n=st.integers(0, 100), seed=st.integers(0, 2**32))
def test_all_start_at_zero_and_never_go_back(process, n, seed):
    seconds = process.sample(rng(seed), n)
    assert seconds.dtype == np.float64
    assert len(seconds) == n
    assert (seconds[:1] == 0).all()
    assert (np.diff(seconds) >= 0).all()
    assert np.isfinite(seconds).all()
    assert process.max_concurrency == 0


@given(process=PROCESSES, n=st.integers(1, 100), seed=st.integers(0, 2**32))
def test_fewer_are_the_first_of_more(process, n, seed):
    assert process.sample(rng(seed), n).tolist() == process.sample(rng(seed), 100)[:n].tolist()


@pytest.mark.parametrize(
    ("process", "cv"), [(Poisson(40), 1), (Gamma(40, 0.5), math.sqrt(2)), (Gamma(40, 4), 0.5)]
)
def test_gaps_have_the_mean_and_deviation_asked_for_and_are_independent(process, cv):
    gaps = np.diff(process.sample(rng(), 50_000))
    assert gaps.mean() == pytest.approx(1 / 40, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.03)
    assert process.gap_cv == pytest.approx(cv)
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 0.02


def test_poisson_gaps_are_exponential():
    gaps = np.diff(Poisson(40).sample(rng(), 50_000))
    assert np.mean(gaps > 2 / 40) == pytest.approx(np.exp(-2), rel=0.05)


def test_poisson_dispersion_is_one():
    arrived = np.histogram(Poisson(100).sample(rng(), 100_000), bins=np.arange(0, 900))[0]
    assert arrived.var() / arrived.mean() == pytest.approx(1, abs=0.15)


def test_a_burstiness_of_one_is_a_poisson_process():
    gaps = np.diff(Gamma(40, 1).sample(rng(), 50_000))
    for multiple in (0.1, 1, 3):
        assert np.mean(gaps > multiple / 40) == pytest.approx(np.exp(-multiple), rel=0.06)


@given(rate=st.floats(1e-3, 1e6), n=st.integers(2, 1000))
def test_a_constant_rate_is_kept_to_the_nanosecond_over_any_number(rate, n):
    seconds = Constant(rate).sample(rng(), n)
    assert seconds[-1] == pytest.approx((n - 1) / rate, abs=0.6e-9, rel=1e-12)
    gaps = np.diff(seconds)
    assert gaps.max() - gaps.min() <= 1.1e-9 + 1e-12 * seconds[-1]


@pytest.mark.parametrize(("first", "last"), [(0, 40), (5, 40), (40, 5), (20, 20)])
def test_a_ramp_has_the_rate_of_its_time(first, last):
    """Counts in windows against the integral of the rate, by hand."""
    ramp = Ramp(first, last, 1000)
    seconds = ramp.sample(rng(3), 45_000)
    borders = [0, 100, 250, 500, 750, 1000, 1200]
    counts = np.histogram(seconds, borders)[0]
    for begin, end, count in zip(borders, borders[1:], counts, strict=False):
        middle = min((begin + end) / 2, 1000)
        expected = (first + (last - first) * middle / 1000) * (end - begin)
        assert count == pytest.approx(expected, abs=5 * math.sqrt(expected))
    by_its_clock = np.diff(ramp.stationary(seconds))
    assert by_its_clock.mean() == pytest.approx(1, rel=0.03)
    assert by_its_clock.std() == pytest.approx(1, rel=0.03)


@given(
    first=st.just(0.0) | st.floats(0.01, 1e3),
    last=st.floats(0.01, 1e3),
    seconds=st.floats(0.1, 1e4),
    seed=st.integers(0, 2**32),
)
def test_a_ramps_clock_undoes_its_inversion(first, last, seconds, seed):
    ramp = Ramp(first, last, seconds)
    unit = np.concatenate([[0], np.cumsum(rng(seed).exponential(1, 49))])
    times = ramp.sample(rng(seed), 50)
    np.testing.assert_allclose(ramp.stationary(times), unit, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(("arrivals", "cap"), [(AllAtOnce(), 0), (ClosedLoop(7), 7)])
def test_the_others_are_all_there_from_the_start(arrivals, cap):
    assert arrivals.sample(rng(), 4).tolist() == [0, 0, 0, 0]
    assert arrivals.max_concurrency == cap
    assert arrivals.gap_cv is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at_once", AllAtOnce()),
        ("constant:200", Constant(200)),
        ("poisson:4", Poisson(4)),
        ("poisson:0.25", Poisson(0.25)),
        ("gamma:20:0.5", Gamma(20, 0.5)),
        ("ramp:0:20:60", Ramp(0, 20, 60)),
        ("closed_loop:1024", ClosedLoop(1024)),
    ],
)
def test_every_form_parses(text, expected):
    assert parse_arrivals(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("burst", "no kind 'burst'"),
        ("at_once:3", "at most 0 values"),
        ("constant:-1", "rate -1 must be"),
        ("poisson", "missing required field `rate`"),
        ("poisson:0", "rate 0 must be"),
        ("poisson:inf", "rate inf must be"),
        ("poisson:fast", "rate: Expected `float`"),
        ("gamma:20", "missing required field `burstiness`"),
        ("gamma:20:0", "burstiness 0 must be"),
        ("gamma:0:1", "rate 0 must be"),
        ("ramp:0:0:60", "to_rate 0 must be"),
        ("ramp:-1:10:60", "from_rate -1 must be"),
        ("ramp:1:10:0", "seconds 0 must be"),
        ("ramp:1:10:nan", "seconds nan must be"),
        ("closed_loop:0", "concurrency 0 must be"),
        ("closed_loop:1.5", "concurrency: Expected `int`"),
    ],
)
def test_a_wrong_form_is_refused_with_the_forms(text, why):
    with pytest.raises(ValueError, match=why) as refused:
        parse_arrivals(text)
    assert "closed_loop:CONCURRENCY" in str(refused.value)
    assert "\n" not in str(refused.value)
