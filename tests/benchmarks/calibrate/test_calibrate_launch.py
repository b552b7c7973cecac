"""Launches whose figures are known are found again, and what they leave open is told."""

from collections.abc import Sequence

import pytest
from calibration_points import POINTS
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.calibrate.host_launch import fit_host
from benchmarks.calibrate.point import LaunchTimes, Point
from engines.builtin.device.profile import HostLaunch

seconds = st.floats(1e-5, 2e-3)
each = st.floats(1e-9, 1e-6)


def launches(host: HostLaunch, points: Sequence[Point], device: float) -> list[list[LaunchTimes]]:
    """Three steps of each point, the last of which somebody disturbed."""
    found = []
    for point in points:
        before = host.seconds_before(point.batch_size, point.prefill)
        launch = before + host.tail_seconds
        step = LaunchTimes(launch, before + device, device)
        found.append([step, step, LaunchTimes(launch + 1, before + device + 1, device)])
    return found


@given(seconds, each, seconds, each, seconds)
def test_a_known_launch_is_found(replay, per_row, eager, per_token, tail):
    known = HostLaunch(
        replay_seconds=replay,
        replay_seconds_per_row=per_row,
        eager_seconds=eager,
        eager_seconds_per_token=per_token,
        tail_seconds=tail,
        wake_up_seconds=0.0,
        gil_free_share=0.0,
    )
    host, worst = fit_host(POINTS, launches(known, POINTS, device=3e-3))
    for point in POINTS:
        assert host.seconds_before(point.batch_size, point.prefill) == pytest.approx(
            known.seconds_before(point.batch_size, point.prefill), rel=5e-3
        )
    assert host.tail_seconds == pytest.approx(tail, rel=1e-3)
    assert worst < 1e-3


def test_a_launch_that_is_not_affine_says_so():
    points = [Point(rows, 16, 0) for rows in (1, 8, 64, 512)]

    def worst(*before: float) -> float:
        return fit_host(points, [[LaunchTimes(1e-3, each + 1e-3, 1e-3)] for each in before]).worst

    assert worst(101e-6, 108e-6, 164e-6, 612e-6) < 1e-3
    assert worst(101e-6, 608e-6, 164e-6, 612e-6) > 0.1


def test_a_step_that_took_the_device_longer_than_the_host_saw_launches_in_no_time():
    points = [Point(rows, 16, 0) for rows in (1, 8)]
    host, _ = fit_host(points, [[LaunchTimes(1e-4, 1e-3, 1.1e-3)]] * 2)
    assert host.seconds_before(8, 0) == 0
