"""What makes a trial invalid, a window steady, arrivals as scheduled: both sides of each."""

import msgspec
import numpy as np
import pytest
from small import process, schedule
from test_compute_metrics import events, made_up

from harness.statistics.percentile import fewest_samples
from harness.trial.arrival_fidelity import arrival_words, check_delivered
from harness.trial.compute_metrics import compute_metrics
from harness.trial.observation import Observation
from harness.trial.recorder import STEP_COLUMNS, RequestStamps
from harness.trial.steady_state import SteadySteps, find_steady_state
from harness.trial.watch import full_steps
from workloads.arrival_check import check_arrivals

S = 10**9


def overran(late_ns: int, length_ns: int, **changes) -> Observation:
    row = dict.fromkeys(STEP_COLUMNS, 0) | {
        "process": 1,
        "num_rows": 1,
        "late_ns": late_ns,
        "device_length_ns": length_ns,
    }
    return made_up(steps=np.array([[row[name] for name in STEP_COLUMNS]]), **changes)


@pytest.mark.parametrize(("late_ns", "is_valid"), [(9_999, True), (10_000, True), (10_001, False)])
def test_modelled_waits_may_overrun_by_a_hundredth(late_ns, is_valid):
    assert (not compute_metrics(overran(late_ns, S // 1000), "timing").invalid) == is_valid
    waits = overran(late_ns, S // 1000, counts_lateness=False)
    assert not compute_metrics(waits, "timing").invalid


@pytest.mark.parametrize(("dropped", "is_valid"), [(0, True), (1, False)])
def test_one_collection_without_room_makes_a_trial_invalid_for_good(dropped, is_valid):
    full = msgspec.structs.replace(process(), probe_dropped=dropped)
    found = compute_metrics(made_up(processes=[full], events=[events([])]), "counts")
    assert (not found.invalid, not found.recurs) == (is_valid, is_valid)


def steady(load, times) -> bool:
    return isinstance(find_steady_state(np.array(load), np.array(times)), SteadySteps)


@pytest.mark.parametrize(("count", "is_steady"), [(99, False), (100, True)])
def test_a_window_has_a_hundred_steps(count, is_steady):
    assert steady([64] * count, [S] * count) == is_steady


@pytest.mark.parametrize(("least", "is_steady"), [(94, False), (95, True)])
def test_load_stands_still_at_95_percent_of_its_peak(least, is_steady):
    assert steady([100, *[least] * 99], [S] * 100) == is_steady


def blocks(values) -> np.ndarray:
    """A hundred steps, which are looked at as twenty blocks, none of which can be left out."""
    return np.repeat(values, 5)


@pytest.mark.parametrize(("first", "is_steady"), [(1981, False), (1982, True)])
def test_a_drift_is_one_from_a_fiftieth_on(first, is_steady):
    """Twenty times 2 of a median of 2,000, and of 2,001."""
    assert steady([64] * 100, blocks(first + 2 * np.arange(20))) == is_steady


@pytest.mark.parametrize(("swaps", "is_steady"), [(55, False), (56, True)])
def test_a_trend_is_one_that_chance_brings_once_in_a_hundred_times(swaps, is_steady):
    """Of 190 pairs so many fall: p is 0.0094 and 0.0114."""
    values = 1000 + 100 * np.arange(20)
    values[:11] = values[:11][::-1]
    if swaps == 56:
        values[[18, 19]] = values[[19, 18]]
    assert sum(a > b for n, a in enumerate(values) for b in values[n:]) == swaps
    assert steady([64] * 100, blocks(values)) == is_steady


@pytest.mark.parametrize(("count", "is_said"), [(19, False), (20, True)])
def test_arrivals_are_judged_from_twenty_requests_on(count, is_said):
    assert bool(delivered(np.arange(count) / 50.0, np.zeros(count))) == is_said


def delivered(asked_seconds, late_seconds) -> str:
    of = schedule([1] * len(asked_seconds), arrival_seconds=np.asarray(asked_seconds))
    due = S + np.rint(of.arrival_seconds * S).astype(np.int64)
    sent = due + np.rint(np.asarray(late_seconds) * S).astype(np.int64)
    zeros = np.zeros(len(due), np.int64)
    requests = RequestStamps(due, sent, sent + 1, zeros, zeros, zeros, np.ones(len(due), np.int8))
    return arrival_words(check_delivered(of, requests).sent)


@pytest.mark.parametrize(("jitter", "is_said"), [(0.2495, False), (0.2505, True)])
def test_lateness_may_span_a_quarter_of_a_mean_gap(jitter, is_said):
    """From its 5th to its 95th percentile: so much for one request in five."""
    late = 0.02 * jitter * (np.arange(200) % 5 == 0)
    assert ("jitter" in delivered(np.arange(200) * 0.02, late).split(";")[0]) == is_said


@pytest.mark.parametrize(("num_rows", "is_full"), [(94, False), (95, True)])
def test_a_step_is_full_from_95_percent_of_the_fullest_on(num_rows, is_full):
    assert full_steps(np.array([100, num_rows])).tolist() == [True, is_full]


@pytest.mark.parametrize(("q", "least"), [(90, 64), (95, 130), (99, 662), (99.9, 6636)])
def test_a_percentile_needs_two_samples_beyond_it(q, least):
    assert fewest_samples(q) == least


def poisson(seed: int) -> np.ndarray:
    """Four hundred gaps."""
    return np.random.default_rng(seed).exponential(0.02, 400)


def wrong(gaps, sent_gaps) -> str:
    """What is said to be not as scheduled, of gaps that were to be others."""
    asked, sent = (np.concatenate([[0.0], np.cumsum(each)]) for each in (gaps, sent_gaps))
    return delivered(asked, sent - asked).partition(";")[0].partition("not as scheduled")[2]


@pytest.mark.parametrize(("change", "is_said"), [(0.0199, False), (0.0201, True)])
def test_the_cv_of_equal_gaps_may_grow_to_a_fiftieth(change, is_said):
    gaps = np.full(400, 0.02)
    assert ("gaps' CV" in wrong(gaps, gaps * (1 + change * (-1) ** np.arange(400)))) == is_said


@pytest.mark.parametrize(("share", "is_said"), [(0.0499, False), (0.0501, True)])
def test_the_cv_of_gaps_may_differ_by_a_twentieth(share, is_said):
    gaps = poisson(0)
    sent = gaps.mean() + (gaps - gaps.mean()) * (1 - share)
    assert ("gaps' CV" in wrong(gaps, sent)) == is_said


@pytest.mark.parametrize(
    ("name", "limit", "seed", "num_sorted", "is_said"),
    [
        ("lag-1 correlation", 0.1, 2, 63, False),
        ("lag-1 correlation", 0.1, 2, 62, True),
        ("dispersion", 0.25, 7, 21, False),  # of 0.87
        ("dispersion", 0.25, 1, 19, True),  # of 0.64
        ("dispersion", 0.2725, 19, 29, False),  # a quarter of 1.09
        ("dispersion", 0.2725, 19, 27, True),
    ],
)
def test_the_order_of_gaps_may_differ_by_so_much(name, limit, seed, num_sorted, is_said):
    """The first of them come in ascending order: they go with the next, and counts clump."""
    gaps = poisson(seed)
    sent = np.concatenate([np.sort(gaps[:num_sorted]), gaps[num_sorted:]])
    was, found = (
        getattr(check_arrivals(np.concatenate([[0.0], each.cumsum()])), field)
        for each in (gaps, sent)
        for field in [{"lag-1 correlation": "lag1_correlation"}.get(name, name)]
    )
    assert abs(found - was) == pytest.approx(limit, rel=0.03)
    assert (f"{name} " in wrong(gaps, sent)) == is_said
