import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.arrivals import AllAtOnce, ClosedLoop, Poisson, parse_arrivals


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(rate=st.floats(1e-3, 1e9), n=st.integers(0, 100), seed=st.integers(0, 2**32))
def test_poisson_starts_at_zero_and_never_goes_back(rate, n, seed):
    seconds = Poisson(rate).sample(rng(seed), n)
    assert seconds.dtype == np.float64
    assert len(seconds) == n
    assert (seconds[:1] == 0).all()
    assert (np.diff(seconds) >= 0).all()


def test_poisson_gaps_are_exponential_and_independent():
    gaps = np.diff(Poisson(40).sample(rng(), 50_000))
    assert gaps.mean() == pytest.approx(1 / 40, rel=0.02)
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.02)
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 0.02
    assert np.mean(gaps > 2 / 40) == pytest.approx(np.exp(-2), rel=0.05)


def test_poisson_dispersion_is_one():
    arrived = np.histogram(Poisson(100).sample(rng(), 100_000), bins=np.arange(0, 900))[0]
    assert arrived.var() / arrived.mean() == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize(("arrivals", "cap"), [(AllAtOnce(), 0), (ClosedLoop(7), 7)])
def test_the_others_are_all_there_from_the_start(arrivals, cap):
    assert arrivals.sample(rng(), 4).tolist() == [0, 0, 0, 0]
    assert arrivals.max_concurrency == cap


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at_once", AllAtOnce()),
        ("poisson:4", Poisson(4)),
        ("poisson:0.25", Poisson(0.25)),
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
        ("poisson", "missing required field `rate`"),
        ("poisson:0", "rate 0 must be"),
        ("poisson:inf", "rate inf must be"),
        ("poisson:fast", "rate: Expected `float`"),
        ("closed_loop:0", "concurrency 0 must be"),
        ("closed_loop:1.5", "concurrency: Expected `int`"),
    ],
)
def test_a_wrong_form_is_refused_with_the_forms(text, why):
    with pytest.raises(ValueError, match=why) as refused:
        parse_arrivals(text)
    assert "closed_loop:CONCURRENCY" in str(refused.value)
