"""Steady states: found in flat noise, not in a trend; and what is measured in them."""

from itertools import pairwise

import numpy as np
import pytest
from examples import every, examples
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, theilslopes

from harness.metrics import METRICS
from harness.trial.steady_state import (
    MIN_STEPS,
    DriftingSteps,
    SteadySteps,
    UnsteadyLoad,
    find_steady_state,
    transient,
    trend,
)

STEP_NS = 2_000_000


def noise(count: int, seed: int, sd: float = 0.02, pauses: float = 0.02) -> np.ndarray:
    """Step times of no trend: log-normal, some ten times as long."""
    rng = np.random.default_rng(seed)
    times = STEP_NS * np.exp(sd * rng.standard_normal(count))
    times[rng.random(count) < pauses] *= 10
    return times.astype(np.int64)


def full(count: int, load: int = 64) -> np.ndarray:
    return np.full(count, load)


@pytest.mark.parametrize("count", [MIN_STEPS, 130, 300, 5_000])
@pytest.mark.parametrize("sd", [0.0, 0.02, 0.1])
def test_flat_noise_is_steady(count, sd):
    seeds = range(0, 200, min(5, every()))
    found = [find_steady_state(full(count), noise(count, seed, sd)) for seed in seeds]
    windows = [each.after - each.first for each in found if isinstance(each, SteadySteps)]
    assert len(windows) >= 0.95 * len(found)
    assert np.median(windows) >= 0.8 * count
    assert min(windows) >= max(MIN_STEPS, count // 2)


@pytest.mark.parametrize("count", [300, 1_000, 5_000])
@pytest.mark.parametrize("change", [0.1, -0.1, 1.0])
def test_a_trend_is_not_steady(count, change):
    ramp = np.linspace(1, 1 + change, count)
    found = [find_steady_state(full(count), noise(count, seed) * ramp) for seed in range(100)]
    without = [each for each in found if isinstance(each, DriftingSteps)]
    assert len(without) >= 0.99 * len(found)
    assert all((each.drift > 0) == (change > 0) for each in without)


def test_a_drift_that_nobody_would_speak_of_is_no_trend():
    for seed in range(50):
        times = noise(2_000, seed, sd=0.005) * np.linspace(1, 1.01, 2_000)
        assert isinstance(find_steady_state(full(2_000), times), SteadySteps)


def test_warming_up_and_running_out_are_left_out():
    load = np.concatenate([np.arange(0, 64, 0.5), full(1_000), np.arange(64, 0, -0.5)]).astype(int)
    at_peak = np.flatnonzero(load >= 0.95 * 64)
    begin, end = int(at_peak[0]), int(at_peak[-1]) + 1
    for seed in range(50):
        times = noise(len(load), seed)
        times[begin : begin + 150] *= 2  # prompts, say
        times[end - 60 : end] //= 2
        steady = find_steady_state(load, times)
        # As sharp as a block; at the ends of the flat part chance may take a few blocks more.
        assert begin + 150 - 25 <= steady.first <= begin + 450
        assert end - 360 <= steady.after <= end - 60 + 25
        assert steady.num_steps == len(load)


def test_the_longest_time_at_the_peak_counts():
    load = np.concatenate([full(150), full(400, 30), full(300, 62), full(90, 64)])
    steady = find_steady_state(load, noise(len(load), 0))
    assert 550 <= steady.first < steady.after <= 940
    assert steady.after - steady.first >= 195


@pytest.mark.parametrize(
    ("load", "longest"),
    [
        (full(MIN_STEPS - 1), MIN_STEPS - 1),
        (np.tile([64, 64, 64, 60], 200), 3),
        (np.arange(2_000), 100),
        (np.zeros(500, np.int64), 0),
        (np.zeros(0, np.int64), 0),
    ],
)
def test_too_few_steps_near_the_peak_are_none(load, longest):
    steady = find_steady_state(load, noise(len(load), 0))
    if longest >= MIN_STEPS:
        assert steady.after - steady.first == longest
        return
    assert steady == UnsteadyLoad(peak=load.max(initial=0), longest=longest)


loads = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 400)), min_size=1, max_size=6).map(
    lambda parts: np.concatenate([full(count, 20 * level) for level, count in parts])
)


@examples(150)
@given(loads, st.integers(0, 10_000), st.floats(0, 0.3), st.floats(-0.5, 2))
def test_whatever_is_found_keeps_what_is_promised(load, seed, sd, change):
    times = (noise(len(load), seed, sd) * np.linspace(1, 1 + change, len(load))).astype(np.int64)
    steady = find_steady_state(load, times)
    assert find_steady_state(load, times * 4) == steady, "the unit does not matter"
    if not isinstance(steady, SteadySteps):
        return
    assert 0 <= steady.first < steady.after <= len(load)
    assert steady.after - steady.first >= MIN_STEPS
    inside = load[steady.first : steady.after]
    assert inside.min() >= 0.95 * load.max()
    before, after = load[: steady.first], load[steady.after :]
    near = load >= 0.95 * load.max()
    run = steady.after - steady.first
    run += next((i for i, here in enumerate(near[: steady.first][::-1]) if not here), len(before))
    run += next((i for i, here in enumerate(near[steady.after :]) if not here), len(after))
    assert steady.after - steady.first >= run // 2 - 5, "at least half of the time at the peak"


values = st.lists(st.floats(1, 1e6) | st.integers(1, 5), min_size=3, max_size=60).map(
    lambda each: np.array(each, np.float64)
)


@given(values)
def test_the_trend_is_theil_sen_s_and_mann_kendall_s(series):
    drift, p_value = trend(series)
    slope = theilslopes(series).slope
    assert drift == pytest.approx(slope * len(series) / np.median(series), rel=1e-9, abs=1e-12)
    expected = kendalltau(np.arange(len(series)), series, method="asymptotic").pvalue
    assert p_value == pytest.approx(1.0 if np.isnan(expected) else expected, abs=1e-9)


@given(values, st.data())
def test_the_transient_is_the_one_of_least_standard_error(series, data):
    most = data.draw(st.integers(0, len(series) - 2))
    rest = [series[left:] for left in range(most + 1)]
    scores = [float(((part - part.mean()) ** 2).sum()) / len(part) ** 2 for part in rest]
    spread = float(((series - series.mean()) ** 2).sum()) + 1e-9 * float(series.max()) ** 2
    assert scores[transient(series, most)] <= min(scores) + 1e-9 * spread


def test_a_run_without_a_pause_is_taken_whole():
    steady = find_steady_state(full(500), np.full(500, STEP_NS))
    assert steady == SteadySteps(first=0, after=500, num_steps=500)


def test_every_metric_of_the_window_is_in_the_table():
    names = [name for name in METRICS if name.startswith("steady_")]
    assert len(names) == 6
    assert all(METRICS[name].mode == "timing" for name in names)
    assert all(a < b for a, b in pairwise(map(list(METRICS).index, names)))
