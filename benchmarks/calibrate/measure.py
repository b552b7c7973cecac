"""Measuring the points on a device, in rounds: what slows a machine for a while slows them all."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.calibrate.host_launch import StampedDevice
from benchmarks.calibrate.point import LaunchTimes, Point, Sample
from benchmarks.calibrate.points import MIN_POINTS
from benchmarks.calibrate.steps import num_blocks, sample
from engines.builtin.worker.runner import ModelRunner
from engines.protocol import EngineConfig

_CEILINGS = {
    "bandwidth_bytes_per_second": "copy_bytes_per_second",
    "flops_per_second": "matmul_flops_per_second",
}
"""What of `engines.protocol.StepEngine.device_stats` is the most that a figure can be."""


class StepSamples(NamedTuple):
    """``left_out``: a sentence for each point that the device's memory does not hold.

    ``ceilings``: what the device reached at best, by the profile's field; empty where it does no
    arithmetic.
    """

    samples: list[Sample]
    left_out: list[str]
    ceilings: dict[str, float]


def measure(
    config: EngineConfig,
    points: Sequence[Point],
    num_steps: int,
    num_rounds: int,
    on_point: Callable[[Point], None],
) -> StepSamples:
    """Measure each point with ``num_steps`` timed steps a round; ``on_point`` is called after each.

    Raises ValueError where the device cannot be built, or its memory holds too few points.
    """
    runner = ModelRunner(config)
    runner.device = StampedDevice(runner.device)
    held = runner.device.num_kv_tokens(config) // config.block_size
    needed = {point: num_blocks(point, num_steps, config.block_size) for point in points}
    left_out = [
        f"{point}: it takes {count:,} KV blocks of {config.block_size} tokens, the device's "
        f"memory holds {held:,}"
        for point, count in needed.items()
        if count > held
    ]
    fitting = [point for point in points if needed[point] <= held]
    if len(fitting) < MIN_POINTS:
        raise ValueError(
            f"{len(fitting)} of {len(points)} points fit into the KV cache, {MIN_POINTS} are "
            f"needed; {left_out[0]}"
        )
    runner.device.initialize_cache(max(needed[point] for point in fitting))
    runner.device.stats()  # what it sustains is measured for as long as has passed since
    times: dict[Point, list[LaunchTimes]] = {point: [] for point in fitting}
    last: dict[Point, Sample] = {}
    for _ in range(num_rounds):
        for point in fitting:
            last[point] = sample(runner, config, point, num_steps)
            times[point] += last[point].steps
            on_point(point)
    samples = [last[point]._replace(steps=times[point]) for point in fitting]
    stats = runner.device.stats()
    ceilings = {name: stats[stat] for name, stat in _CEILINGS.items() if stats.get(stat)}
    return StepSamples(samples, left_out, ceilings)
