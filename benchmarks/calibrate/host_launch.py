"""What launching a step takes the host, beside what the device says the step takes."""

import time
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks.calibrate.point import LaunchTimes, Point
from engines.builtin.device import Device, DeviceBatch, StepHandle
from engines.builtin.device.profile import HostLaunch


class StampedDevice:
    """A device that notes when its last launch began and ended, `time.perf_counter_ns`: what the
    model runner does around it is not in it.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self.num_kv_tokens = device.num_kv_tokens
        self.initialize_cache = device.initialize_cache
        self.stats = device.stats
        self.began_ns = self.launched_ns = 0

    def launch(self, batch: DeviceBatch) -> StepHandle:
        """As the device does."""
        self.began_ns = time.perf_counter_ns()
        handle = self._device.launch(batch)
        self.launched_ns = time.perf_counter_ns()
        return handle


class HostFit(NamedTuple):
    """``worst``: the greatest error of a point's time before the device, as a share of a step."""

    host: HostLaunch
    worst: float


def fit_host(points: Sequence[Point], times: Sequence[Sequence[LaunchTimes]]) -> HostFit:
    """Fit the launch to steps on an idle device, each with the host's times and the device's.

    What a step takes beside the device's own time is affine in the rows that decode and in the
    prompt's tokens; how soon the tokens are known after the step cannot be told from it and is in
    it. When the GIL is free was not measured: it is taken to be held.
    """
    from scipy.optimize import nnls

    before = np.array([median(each.before_seconds for each in steps) for steps in times])
    latency = np.array([median(each.latency_seconds for each in steps) for steps in times])
    columns = np.array(
        [[p.batch_size > 0, p.batch_size, p.prefill > 0, p.prefill] for p in points], float
    )
    # Errors count as shares of a step. No column is longer than another: rows are, by thousands.
    matrix = columns / latency[:, None]
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1.0
    found = nnls(matrix / scale, np.maximum(before, 0) / latency)[0] / scale
    errors = np.abs(columns @ found - before) / latency
    tail = median(each.tail_seconds for steps in times for each in steps)
    replay, per_row, eager, per_token = (float(f"{each:.4g}") for each in found)
    host = HostLaunch(
        replay_seconds=replay,
        replay_seconds_per_row=per_row,
        eager_seconds=eager,
        eager_seconds_per_token=per_token,
        tail_seconds=float(f"{max(0.0, tail):.4g}"),
        wake_up_seconds=0.0,
        gil_free_share=0.0,
    )
    return HostFit(host, float(errors.max()))
