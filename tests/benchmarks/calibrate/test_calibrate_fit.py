"""The figures of a made-up device are found again from its step times, or said to be open."""

import msgspec
import numpy as np
import pytest
from calibration_points import LOADS, MIDDLE, UNIT, Corners, between, decoding, device, times
from examples import attempts, examples
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.calibrate.fit import fit
from benchmarks.calibrate.known import ATTENTION_RATES, LAUNCH, RATES, base
from benchmarks.calibrate.point import Load
from benchmarks.calibrate.roofline import Roofline

shares = st.floats(0, 1)


def corner_at(a, b, c, d, e) -> Corners:
    """A point of the space of devices, each coordinate from 0 to 1."""
    return Corners(
        bandwidth=between(1e9, 5e12, a),
        tokens=between(4, 200, b),
        launch=between(0.1, 2, c),
        attention=between(0.3, 3, d),
        ratio=between(0.004, 0.8, e),
    )


corners = st.builds(corner_at, *[shares] * 5)


def fitted(true, loads=LOADS, ceilings=None, **noise):
    return fit(UNIT, loads, times(true, loads, **noise), ceilings or {})


def rates(profile) -> dict[str, float]:
    return {name: getattr(profile, name) or getattr(profile, base(name)) for name in RATES}


@pytest.mark.slow
@examples(2)
@given(corners)
def test_what_is_told_of_a_device_without_noise_is_right(where):
    check_without_noise(where)


@pytest.mark.slow
@examples(25)
@given(corners)
def test_what_is_told_of_many_devices_without_noise_is_right(where):
    check_without_noise(where)


def check_without_noise(where):
    true = device(where)
    found = fitted(true)
    for load, measured in zip(LOADS, times(true, LOADS), strict=True):
        assert found.profile.seconds(*load) == pytest.approx(measured, rel=1e-3)
    for figure in found.figures:
        if figure.is_told:
            assert figure.value == pytest.approx(rates(true)[figure.name], rel=0.02), figure


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
def test_a_device_with_3_percent_noise_is_found_again(seed):
    near = near_with_noise(device(MIDDLE), seed)
    assert len(near) >= 5
    assert all(near)


@pytest.mark.slow
def test_most_devices_with_3_percent_noise_are_found_again():
    """Not all: noise can put a figure anywhere, so what is asked is how often it does."""
    few = 10  # of fewer no share can be told
    draws = np.random.default_rng(1).random((max(few, attempts(25)), 5))
    near = [
        each
        for seed, where in enumerate(draws.tolist())
        for each in near_with_noise(device(corner_at(*where)), seed)
    ]
    assert len(near) > 4 * len(draws)
    assert np.mean(near) > 0.96


def near_with_noise(true, seed) -> list[bool]:
    """Whether step times as a whole, the worst of them and each figure that is told are near."""
    found = fitted(true, noise=0.03, seed=seed)
    exact = times(true, LOADS)
    errors = [
        abs(found.profile.seconds(*load) / seconds - 1)
        for load, seconds in zip(LOADS, exact, strict=True)
    ]
    told = [figure for figure in found.figures if figure.is_told]
    figures = [each.value == pytest.approx(rates(true)[each.name], rel=0.35) for each in told]
    return [np.median(errors) < 0.04, max(errors) < 0.15, *figures]


@pytest.mark.slow
def test_all_five_figures_are_told_where_every_branch_is_taken():
    true = device(MIDDLE)
    found = fitted(true)
    assert [figure.name for figure in found.figures] == list(RATES)
    for figure in found.figures:
        value = getattr(true, figure.name)
        assert figure.is_told
        assert figure.value == pytest.approx(value, rel=1e-4)
        assert figure.low < value < figure.high < 1.3 * figure.low


@pytest.mark.slow
def test_ranges_hold_the_truth_most_of_the_time():
    true = device(MIDDLE)
    seeds = range(attempts(12))
    within = [
        figure.low is None or figure.low <= truth
        if figure.high is None
        else (figure.low or 0) <= truth <= figure.high
        for seed in seeds
        for figure in fitted(true, noise=0.03, seed=seed).figures
        for truth in [getattr(true, figure.name)]
    ]
    assert len(within) >= 4 * len(seeds)
    assert sum(within) >= 0.9 * len(within)


@pytest.mark.slow
def test_attention_has_no_rates_of_its_own_where_it_needs_none():
    linear = device(MIDDLE)
    true = msgspec.structs.replace(linear, **dict.fromkeys(ATTENTION_RATES))
    found = fitted(true)
    assert [getattr(found.profile, name) for name in ATTENTION_RATES] == [None, None]
    assert rates(found.profile) == pytest.approx(rates(true), rel=1e-4)
    noisy = [fitted(true, noise=0.03, seed=seed).profile for seed in range(3)]
    assert sum(getattr(each, name) is None for each in noisy for name in ATTENTION_RATES) >= 4


def test_a_rate_that_no_step_is_bound_by_is_the_least_that_the_points_allow():
    true = device(Corners(bandwidth=1e12, tokens=1e6, launch=0.5, attention=1, ratio=1e-6))
    loads = [Load(n, 100 * n, 100 * n) for n in (1, 2, 5, 10, 20, 50)]
    found = fitted(true, loads)
    (flops,) = (figure for figure in found.figures if figure.name == "flops_per_second")
    assert flops.high is None
    assert not flops.is_told
    assert flops.value < true.flops_per_second
    assert [found.profile.seconds(*load) for load in loads] == pytest.approx(times(true, loads))
    slower = msgspec.structs.replace(found.profile, flops_per_second=0.9 * flops.value)
    assert [slower.seconds(*load) for load in loads] != pytest.approx(times(true, loads), rel=1e-4)


def test_such_a_rate_is_the_accelerators_best_where_that_is_known():
    true = device(Corners(bandwidth=1e12, tokens=1e6, launch=0.5, attention=1, ratio=1e-6))
    loads = [Load(n, 100 * n, 100 * n) for n in (1, 2, 5, 10, 20, 50)]
    found = fitted(true, loads, {"flops_per_second": 7e14})
    (flops,) = (figure for figure in found.figures if figure.name == "flops_per_second")
    assert (flops.value, flops.best) == (pytest.approx(7e14, rel=1e-3), 7e14)
    assert not flops.is_told


def test_what_only_a_sum_can_be_told_of_is_left_open():
    # No step is bound by arithmetic, and all have one context: weights and launch are one constant.
    true = device(Corners(bandwidth=1e11, tokens=1e6, launch=0.5, attention=1, ratio=1e-6))
    loads = decoding(64, 64, 64, 64, 64, 64)
    found = fitted(true, loads)
    assert not any(figure.is_told for figure in found.figures)
    assert found.profile.seconds(*loads[0]) == pytest.approx(true.seconds(*loads[0]), rel=1e-4)


@pytest.mark.slow
def test_the_devices_best_decides_what_only_a_sum_can_be_told_of():
    true = device(Corners(bandwidth=1e11, tokens=1e6, launch=0.5, attention=0.5, ratio=1e-6))
    loads = [Load(n, n * c, n * c) for n in (1, 2, 4) for c in (10, 1_000, 100_000)]
    ceilings = {"bandwidth_bytes_per_second": 1.1e11, "flops_per_second": 1e18}
    found = fitted(true, loads, ceilings)
    figures = {figure.name: figure for figure in found.figures}
    assert figures["attention_bandwidth_bytes_per_second"].value == pytest.approx(5e10, rel=0.02)
    assert figures["bandwidth_bytes_per_second"].value == pytest.approx(1.1e11, rel=0.02)
    assert not figures[LAUNCH].is_told


def test_a_model_without_arithmetic_is_fitted_all_the_same():
    sizes = msgspec.structs.replace(UNIT, flops_per_token=0, attention_flops_per_token_pair=0)
    true = msgspec.structs.replace(sizes, bandwidth_bytes_per_second=1e9)
    found = fit(sizes, LOADS, times(true, LOADS), {}).profile
    assert found.bandwidth_bytes_per_second == pytest.approx(1e9, rel=1e-3)
    assert [found.seconds(*load) for load in LOADS] == pytest.approx(times(true, LOADS), rel=1e-3)


@pytest.mark.parametrize("own", [(), ATTENTION_RATES[:1], ATTENTION_RATES[1:], ATTENTION_RATES])
def test_the_fits_roofline_is_the_profiles(own):
    true = device(MIDDLE)
    true = msgspec.structs.replace(true, **dict.fromkeys(set(ATTENTION_RATES) - set(own)))
    known = {name: value for name in RATES if (value := getattr(true, name)) is not None}
    modelled = Roofline(UNIT, LOADS, [1.0] * len(LOADS), {}, 0.0).modelled(known)
    assert modelled.tolist() == pytest.approx(times(true, LOADS))


def test_a_clock_that_stands_still_is_refused():
    with pytest.raises(ValueError, match="a step of 0 s was measured"):
        fit(UNIT, LOADS, [0.0] + [1.0] * (len(LOADS) - 1), {})
