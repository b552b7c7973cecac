import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.recipe.lengths import Fixed, Lognormal, Uniform, Zipf, parse_lengths
from workloads.recipe.limits import MAX_TOKENS
from workloads.recipe.observed_lengths import Bin, Empirical, LengthHistogram

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
        ("zipf:1.2:4:900", Zipf(1.2, 4, 900)),
    ],
)
def test_every_form_parses(text, expected):
    assert parse_lengths(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no kind ''"),
        ("zip:3", "no kind 'zip'"),
        ("zipf:3", "missing required field `low`"),
        ("zipf:1:9:3", "low 9 and high 3"),
        ("zipf:1:-4:3", "low -4 and high 3"),
        ("zipf:-1:1:3", "exponent -1 must be"),
        ("zipf:nan:1:3", "exponent nan must be"),
        ("fixed:-5", "a length of -5 must be"),
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


@pytest.mark.parametrize(
    ("exponent", "low", "high"), [(0, 3, 7), (1, 1, 1000), (2.5, 20, 5000), (40, 30, 90)]
)
def test_zipf_has_the_mean_and_deviation_of_its_weights(exponent, low, high):
    lengths = np.arange(low, high + 1)
    weights = np.array([(n / low) ** -exponent for n in lengths.tolist()])
    mean = (lengths * weights).sum() / weights.sum()
    deviation = math.sqrt(((lengths - mean) ** 2 * weights).sum() / weights.sum())
    lens = Zipf(exponent, low, high).sample(rng(), 50_000)
    assert lens.dtype == np.int32
    assert low <= lens.min() <= lens.max() <= high
    assert lens.mean() == pytest.approx(mean, abs=5 * deviation / math.sqrt(50_000) + 1e-9)
    assert lens.std() == pytest.approx(deviation, rel=0.1, abs=1e-9)


def test_empirical_draws_each_value_as_often_as_it_is_there():
    lens = Empirical((7, 7, 7, 900)).sample(rng(), 40_000)
    values, counts = np.unique(lens, return_counts=True)
    assert (lens.dtype, values.tolist()) == (np.int32, [7, 900])
    assert counts[0] / 40_000 == pytest.approx(0.75, abs=0.01)


@st.composite
def histograms(draw):
    edges = sorted(draw(st.sets(st.integers(1, 5000), min_size=2, max_size=12)))
    ends = list(zip(edges[::2], edges[1::2], strict=False))
    weights = draw(st.lists(st.floats(0, 1), min_size=len(ends), max_size=len(ends)))
    total = sum(weights)
    shares = (
        [weight / total for weight in weights] if total > 1e-3 else [1.0] + [0.0] * (len(ends) - 1)
    )
    return LengthHistogram(
        tuple(Bin(*pair, share) for pair, share in zip(ends, shares, strict=True))
    )


@given(histogram=histograms(), seed=st.integers(0, 2**32))
def test_a_histogram_draws_from_bins_with_a_share_only(histogram, seed):
    lens = histogram.sample(rng(seed), 200)
    assert lens.dtype == np.int32
    inside = [(each.low <= lens) & (lens <= each.high) for each in histogram.bins]
    assert np.sum(inside, axis=0).tolist() == [1] * 200
    for each, drawn in zip(histogram.bins, inside, strict=True):
        assert each.share > 0 or not drawn.any()


def test_a_histogram_has_the_shares_asked_for_and_is_even_inside_a_bin():
    histogram = LengthHistogram((Bin(10, 13, 0.25), Bin(14, 14, 0.5), Bin(100, 199, 0.25)))
    lens = histogram.sample(rng(), 100_000)
    shares = np.bincount(lens, minlength=200) / 100_000
    assert shares[10:14] == pytest.approx([0.0625] * 4, abs=0.004)
    assert shares[14] == pytest.approx(0.5, abs=0.008)
    assert shares[100:].sum() == pytest.approx(0.25, abs=0.008)
    assert lens[lens >= 100].mean() == pytest.approx(149.5, abs=1)


def test_lengths_from_a_file(tmp_path):
    values, bins = tmp_path / "lens.txt", tmp_path / "bins:2.csv"
    values.write_text("\ufeff12\n 480\r\n\n33\n", encoding="utf-8")
    bins.write_text("low, high, share\n1,64,0.25\n65,512,.75\n")
    assert parse_lengths(f"empirical:{values}") == Empirical((12, 480, 33))
    assert parse_lengths(f"histogram:{bins}") == LengthHistogram(
        (Bin(1, 64, 0.25), Bin(65, 512, 0.75))
    )


@pytest.mark.parametrize(
    ("kind", "content", "why"),
    [
        ("empirical", "", "values must hold at least one length"),
        ("empirical", "3\n-4\n", "a length of -4 must be between 1"),
        ("empirical", "3\n0\n", "a length of 0 must be between 1"),
        ("empirical", "3\nmany\n", r"line 2: expected one length in tokens a line, found 'many'"),
        ("empirical", "3,4\n", "line 1: expected one length"),
        ("empirical", "3.5\n", "line 1: expected one length"),
        ("histogram", "", "bins must hold at least one bin"),
        ("histogram", "low,high,share\n", "bins must hold at least one bin"),
        ("histogram", "1,9,0.5\n10,20,0.4\n", "shares must sum to 1, these sum to 0.9"),
        ("histogram", "1,9,1.5\n10,20,-0.5\n", "a share of -0.5 must be 0 or more"),
        ("histogram", "1,9,nan\n", "a share of nan must be 0 or more"),
        ("histogram", "10,20,0.5\n1,9,0.5\n", "bin 1 to 9 must begin above 20"),
        ("histogram", "1,9,0.5\n9,20,0.5\n", "bin 9 to 20 must begin above 9"),
        ("histogram", "9,1,1\n", "low 9 and high 1 must be in order"),
        ("histogram", "-9,1,1\n", "low -9 and high 1 must be"),
        ("histogram", "1,9\n", r"line 1: expected low,high,share a line, found '1,9'"),
        ("histogram", "1,9,0.5\n10,x,0.5\n", "line 2: expected low,high,share"),
    ],
)
def test_a_file_of_lengths_that_cannot_be_used_is_refused_in_one_line(tmp_path, kind, content, why):
    path = tmp_path / "lens"
    path.write_text(content)
    with pytest.raises(ValueError, match=why) as refused:
        parse_lengths(f"{kind}:{path}")
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_of_lengths_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"absent cannot be read: No such file"):
        parse_lengths(f"empirical:{tmp_path}/absent")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="binary is not text"):
        parse_lengths(f"histogram:{tmp_path}/binary")
