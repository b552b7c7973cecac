"""Devices that are made up, and what steps of the default grid take on them."""

from math import exp, log
from typing import NamedTuple

import msgspec
import numpy as np

from benchmarks.calibrate.point import Load, Point
from benchmarks.calibrate.points import grid
from engines.builtin.device.profile import DeviceProfile, load_profile

OPT = load_profile("opt-125m-h200")
POINTS = grid([1, 8, 64], [16, 256, 1024], [16, 128, 512])
UNIT = msgspec.structs.replace(
    OPT, bandwidth_bytes_per_second=1.0, flops_per_second=1.0, launch_overhead_seconds=0.0
)
LOADS = [point.load for point in POINTS]


class Corners(NamedTuple):
    """Where a device goes over from bytes to arithmetic: at so many ``tokens`` in its linear
    layers, and in attention where a step has fewer than this ``ratio`` of context to pairs.
    ``launch`` as a share of reading the weights, ``attention`` of the linear bandwidth.
    """

    bandwidth: float
    tokens: float
    launch: float
    attention: float
    ratio: float


MIDDLE = Corners(bandwidth=1e11, tokens=20, launch=0.4, attention=0.6, ratio=0.05)


def device(corners: Corners, sizes: DeviceProfile = OPT) -> DeviceProfile:
    """The profile with these corners."""
    reading = sizes.weight_bytes / corners.bandwidth
    attention = corners.attention * corners.bandwidth
    pairs = sizes.attention_flops_per_token_pair * attention / sizes.kv_bytes_per_token
    return msgspec.structs.replace(
        sizes,
        bandwidth_bytes_per_second=corners.bandwidth,
        flops_per_second=corners.tokens * sizes.flops_per_token / reading,
        launch_overhead_seconds=corners.launch * reading,
        attention_bandwidth_bytes_per_second=attention,
        attention_flops_per_second=pairs / corners.ratio,
    )


def between(low: float, high: float, where: float) -> float:
    """From ``low`` at 0 to ``high`` at 1, evenly in the logarithm."""
    return exp(log(low) + where * log(high / low))


def times(
    profile: DeviceProfile, loads: list[Load], noise: float = 0, seed: int = 0
) -> list[float]:
    """Seconds of each step, off by a lognormal ``noise``."""
    off = np.exp(noise * np.random.default_rng(seed).standard_normal(len(loads)))
    return [profile.seconds(*load) * each for load, each in zip(loads, off.tolist(), strict=True)]


def decoding(*contexts: int, batch_size: int = 1) -> list[Load]:
    """Loads of decode steps."""
    return [Point(batch_size, context, 0).load for context in contexts]
