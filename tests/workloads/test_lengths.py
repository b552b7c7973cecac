import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.lengths import MAX_TOKENS, Fixed, Lognormal, Uniform, parse_lengths

TOKENS = st.integers(1, MAX_TOKENS)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(low=TOKENS, high=TOKENS, seed=st.integers(0, 2**32))
def test_uniform_stays_inside_both_ends(low, high, seed):
    low, high = sorted((low, high))
    lens = Uniform(low, high).sample(rng(seed), 50)
    assert lens.dtype == np.int32
    assert low <= lens.min() <= lens.max() <= high


def test_uniform_reaches_both_ends_evenly():
    counts = np.bincount(Uniform(3, 7).sample(rng(), 50_000), minlength=8)
    assert counts[:3].sum() == 0
    assert np.abs(counts[3:] / 10_000 - 1).max() < 0.05


def test_fixed_is_the_value_and_leaves_the_stream_alone():
    stream = rng()
    assert Fixed(48).sample(stream, 3).tolist() == [48, 48, 48]
    assert stream.random() == rng().random()


def test_lognormal_has_the_median_and_sigma_asked_for():
    logs = np.log(Lognormal(500, 0.8).sample(rng(), 50_000))
    assert np.exp(np.median(logs)) == pytest.approx(500, rel=0.02)
    assert logs.std() == pytest.approx(0.8, rel=0.02)


@given(median=st.floats(1, 1e5), sigma=st.floats(0.01, 20), seed=st.integers(0, 2**32))
def test_lognormal_is_clipped(median, sigma, seed):
    lens = Lognormal(median, sigma, 10, 1000).sample(rng(seed), 50)
    assert lens.dtype == np.int32
    assert 10 <= lens.min() <= lens.max() <= 1000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("48", Fixed(48)),
        (" fixed:48 ", Fixed(48)),
        ("uniform:10:100", Uniform(10, 100)),
        ("lognormal:200:1.5", Lognormal(200, 1.5)),
        ("lognormal:200:1.5:4:900", Lognormal(200, 1.5, 4, 900)),
    ],
)
def test_every_form_parses(text, expected):
    assert parse_lengths(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no kind ''"),
        ("zipf:3", "no kind 'zipf'"),
        ("-5", "no kind '-5'"),
        ("0", "between 1 and"),
        ("99999999999", "between 1 and"),
        ("uniform:9:3", "low 9 and high 3"),
        ("uniform:0:3", "low 0 and high 3"),
        ("uniform:3", "missing required field `high`"),
        ("uniform:1:2:3", "at most 2 values, not 3"),
        ("uniform:a:3", "low: Expected `int`"),
        ("lognormal:200:0", "sigma 0 must be"),
        ("lognormal:200:nan", "sigma nan must be"),
        ("lognormal:0.2:1", "median of 0.2"),
        ("lognormal:200:1:9:3", "low 9 and high 3"),
    ],
)
def test_a_wrong_form_is_refused_in_one_line_that_lists_the_forms(text, why):
    with pytest.raises(ValueError, match=why) as refused:
        parse_lengths(text)
    assert text in str(refused.value)
    assert "uniform:LOW:HIGH" in str(refused.value)
    assert "\n" not in str(refused.value)
