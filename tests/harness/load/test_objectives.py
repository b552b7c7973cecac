"""Goodput and percentiles against plain loops and against what is known of the samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.load.distribution import percentiles_of
from harness.load.goodput import goodput, kept, parse_objectives
from harness.trial.recorder import RequestStamps

MS = 10**6


def stamps(rows):
    """Of (sent, first, last in ms, tokens, finish reason)."""
    sent, first, last, tokens, reason = np.array(rows, np.int64).reshape(-1, 5).T
    times = (each * MS for each in (sent, sent, sent, first, last))
    return RequestStamps(*times, tokens, reason.astype(np.int8))


def plainly(row, limits):
    sent, first, last, tokens, reason = row
    tpot = (last - first) / (tokens - 1) if tokens > 1 else 0.0
    if tokens < 0 or (tokens > 1 and last == first):  # unknown, or all at one moment
        tpot = float("inf")
    values = {"ttft": first - sent, "tpot": tpot, "e2el": last - sent}
    return reason >= 0 and all(values[name] <= limit for name, limit in limits.items())


ROWS = st.lists(
    st.tuples(
        st.integers(1, 50),
        st.integers(50, 99),
        st.integers(99, 300),
        st.integers(-1, 9),
        st.integers(-1, 1),
    ),
    min_size=1,
    max_size=20,
)
LIMITS = st.dictionaries(
    st.sampled_from(["ttft", "tpot", "e2el"]), st.integers(1, 200).map(float), min_size=1
)


@given(ROWS, LIMITS)
def test_good_requests_are_those_that_keep_every_objective(rows, limits):
    expected = [plainly(row, limits) for row in rows]
    assert kept(stamps(rows), limits).tolist() == expected
    found = goodput(stamps(rows), limits, len(rows), 2.0)
    assert (found.good, found.share) == (sum(expected), sum(expected) / len(rows))
    assert found.per_second == sum(expected) / 2


def test_without_objectives_there_is_no_goodput():
    assert goodput(stamps([(1, 2, 3, 4, 1)]), {}, 1, 1.0) is None


def test_objectives_are_read_as_vllm_has_them():
    assert parse_objectives("ttft:200,tpot:20.5") == {"ttft": 200.0, "tpot": 20.5}
    assert parse_objectives("ttft:200 e2el:5000") == {"ttft": 200.0, "e2el": 5000.0}


@pytest.mark.parametrize("text", ["ttft", "ttft:x", "itl:5", "ttft:0", "ttft:-1", "ttft:nan", ","])
def test_what_is_no_objective_is_refused_in_a_sentence(text):
    with pytest.raises(ValueError, match="NAME:MILLISECONDS"):
        parse_objectives(text)


@pytest.mark.parametrize(
    ("count", "qs"), [(5, []), (6, [50]), (64, [50, 90]), (662, [50, 90, 95, 99])]
)
def test_a_percentile_is_told_where_there_are_samples_enough(count, qs):
    assert [each.q for each in percentiles_of(np.arange(count) / 1.0, 50.0)] == qs


def test_a_percentile_that_is_asked_for_is_told_too():
    assert [each.q for each in percentiles_of(np.arange(200) / 1.0, 75.0)] == [50, 75, 90, 95]


@pytest.mark.parametrize("q", [50.0, 90.0, 99.0])
def test_intervals_hold_the_true_percentile_19_times_of_20(q):
    rng = np.random.default_rng(5)
    true = -np.log(1 - q / 100)
    held = 0
    for _ in range(400):
        found = {each.q: each for each in percentiles_of(rng.exponential(1, 700), q)}
        low, high = found[q].ci95
        held += low <= true <= high
    assert 0.93 * 400 <= held <= 400
