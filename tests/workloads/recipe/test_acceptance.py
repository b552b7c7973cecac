import itertools
import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.recipe.acceptance import (
    Acceptance,
    FixedAcceptance,
    UniformAcceptance,
    parse_acceptance,
)
from workloads.recipe.speculative import Decaying, Geometric, MinVariance, YieldHistogram

MOST = st.integers(1, 12)
SHARE = st.floats(0, 1)


@st.composite
def histograms(draw):
    weights = draw(st.lists(st.floats(0.001, 1), min_size=1, max_size=12))
    return YieldHistogram(tuple(weight / sum(weights) for weight in weights))


drafted = st.one_of(
    st.builds(Geometric, SHARE, MOST),
    st.builds(Decaying, SHARE, SHARE, MOST),
    st.tuples(st.floats(0, 1), MOST).map(lambda x: MinVariance(1 + x[0] * (x[1] - 1), x[1])),
    histograms(),
)


def table(acceptance, seed: int = 0):
    return acceptance.table(np.random.default_rng(seed))


def test_fixed_is_a_table_of_one():
    made = table(FixedAcceptance(3))
    assert (made.dtype, made.tolist()) == (np.int8, [3])


def test_uniform_fills_its_range():
    made = table(UniformAcceptance(1, 4))
    assert (made.dtype, made.shape) == (np.int8, (1021,))
    assert np.unique(made).tolist() == [1, 2, 3, 4]
    rng = np.random.default_rng(0)
    assert UniformAcceptance(1, 127).table(rng, 20_000).max() == 127


@given(acceptance=drafted, seed=st.integers(0, 2**32))
def test_a_table_has_the_shares_and_the_mean_asked_for(acceptance, seed):
    made = table(acceptance, seed)
    assert (made.dtype, made.shape) == (np.int8, (1021,))
    shares = np.array(acceptance.shares)
    assert shares.sum() == pytest.approx(1)
    counts = np.bincount(made, minlength=len(shares) + 1)[1:]
    assert len(counts) == len(shares)
    assert np.abs(counts - 1021 * shares).max() <= 2 + 1e-6
    assert not counts[shares == 0].any()
    if (shares[: shares.nonzero()[0][-1] + 1] > 0).all():
        assert abs(made.mean() - acceptance.mean) <= 0.5 / 1021 + 1e-9


def test_the_order_is_the_seeds_and_the_counts_are_not():
    one, other = table(Geometric(0.7, 6), 1), table(Geometric(0.7, 6), 2)
    assert one.tolist() != other.tolist()
    assert sorted(one.tolist()) == sorted(other.tolist())


@pytest.mark.parametrize(
    ("acceptance", "mean"),
    [
        (FixedAcceptance(3), 3),
        (UniformAcceptance(1, 4), 2.5),
        (MinVariance(2.4, 5), 2.4),
        (MinVariance(5, 5), 5),
        (Geometric(0.7, 6), (1 - 0.7**6) / 0.3),
        (Geometric(1, 6), 6),
        (Geometric(0, 6), 1),
        (Decaying(0.8, 1, 4), (1 - 0.8**4) / 0.2),
        (Decaying(0.8, 0.5, 3), 1 + 0.8 + 0.8 * 0.4),
        (YieldHistogram((0.5, 0, 0.5)), 2),
    ],
)
def test_means_are_those_of_the_closed_forms(acceptance, mean):
    assert acceptance.mean == pytest.approx(mean)


@given(probability=SHARE, decay=SHARE, most=st.integers(1, 6))
def test_drafts_are_accepted_until_the_first_miss(probability, decay, most):
    """The oracle goes through every outcome of every draft."""
    chances = [probability * decay**i for i in range(most - 1)]
    shares = [0.0] * most
    for outcome in itertools.product([True, False], repeat=most - 1):
        likely = math.prod(p if hit else 1 - p for hit, p in zip(outcome, chances, strict=True))
        accepted = next((i for i, hit in enumerate(outcome) if not hit), most - 1)
        shares[accepted] += likely
    assert Decaying(probability, decay, most).shares == pytest.approx(shares, abs=1e-12)
    if decay == 1:
        assert Geometric(probability, most).shares == pytest.approx(shares, abs=1e-12)


@given(mean=st.floats(1, 8), other=histograms())
def test_no_mix_of_the_same_mean_varies_less(mean, other):
    def variance(acceptance):
        return sum(
            (k - acceptance.mean) ** 2 * share for k, share in enumerate(acceptance.shares, start=1)
        )

    part = mean - math.floor(mean)
    assert variance(MinVariance(mean, 8)) == pytest.approx(part * (1 - part), abs=1e-9)
    assert variance(MinVariance(other.mean, 12)) <= variance(other) + 1e-9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", FixedAcceptance(1)),
        (" 1..4 ", UniformAcceptance(1, 4)),
        ("min_variance:2.5:5", MinVariance(2.5, 5)),
        ("geometric:0.7:6", Geometric(0.7, 6)),
        ("decaying:0.8:0.9:5", Decaying(0.8, 0.9, 5)),
        ("histogram:0.5:0.25:0.25", YieldHistogram((0.5, 0.25, 0.25))),
    ],
)
def test_every_form_parses_and_comes_back_from_json(text, expected):
    assert parse_acceptance(text) == expected
    assert msgspec.json.decode(msgspec.json.encode(expected), type=Acceptance) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no kind ''"),
        ("0", "0 tokens a step"),
        ("128", "128 tokens a step"),
        ("-1", "no kind '-1'"),
        ("4..1", "4..1 tokens a step"),
        ("0..2", "0..2 tokens a step"),
        ("1..200", "1..200 tokens a step"),
        ("1...4", "no kind '1...4'"),
        ("1.5", "no kind '1.5'"),
        ("min_variance:0.5:4", "a mean of 0.5 tokens a step must be from 1 to 4"),
        ("min_variance:4.5:4", "a mean of 4.5"),
        ("min_variance:nan:4", "a mean of nan"),
        ("geometric:1.1:4", "probability 1.1 must be between 0 and 1"),
        ("geometric:0.5:0", "at most 0 tokens a step"),
        ("geometric:0.5:128", "at most 128 tokens a step"),
        ("geometric:0.5", "missing required field `most`"),
        ("decaying:0.5:-1:4", "decay -1 must be between 0 and 1"),
        ("histogram:", "could not convert"),
        ("histogram:0.5:0.4", "shares must sum to 1, these sum to 0.9"),
        ("histogram:1.5:-0.5", "a share of -0.5"),
        ("histogram:" + ":".join(["0"] * 127 + ["1"]), "between 1 and 127 numbers"),
    ],
)
def test_anything_else_is_refused_in_one_line(text, why):
    with pytest.raises(ValueError, match=why) as refused:
        parse_acceptance(text)
    assert "\n" not in str(refused.value)
