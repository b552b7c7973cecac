"""Which steps are measured, and the engine that is large enough for them."""

from collections.abc import Sequence

from benchmarks.calibrate.point import Point
from benchmarks.calibrate.steps import longest_row
from engines.builtin.device.choice import complete_device, device_class
from engines.protocol import EngineConfig

MIN_POINTS = 6
"""One more than the figures that are fitted at most."""


def grid(
    batch_sizes: Sequence[int], contexts: Sequence[int], prefills: Sequence[int]
) -> list[Point]:
    """Batch × context for decoding; prefill × batch, and each prefill alone, at the shortest
    context.

    Raises ValueError for numbers below 1, and for fewer points than a fit needs.
    """
    for flag, values in (
        ("--batch-size", batch_sizes),
        ("--context", contexts),
        ("--prefill", prefills),
    ):
        for value in values:
            if value < 1:
                raise ValueError(f"{flag} {value}: must be at least 1")
    points = [Point(batch_size, context, 0) for batch_size in batch_sizes for context in contexts]
    shortest = min(contexts)
    points += [
        Point(batch_size, shortest if batch_size else 0, prefill)
        for prefill in prefills
        for batch_size in (0, *batch_sizes)
    ]
    if len(points) < MIN_POINTS:
        raise ValueError(
            f"{len(points)} points to measure: 5 figures are fitted, which takes {MIN_POINTS} or "
            "more; give more values of --batch-size, --context or --prefill"
        )
    return points


def sized_config(
    points: Sequence[Point], num_steps: int, *, device: str, model: str
) -> EngineConfig:
    """An engine on which all points can be measured, if its KV cache holds them.

    Raises ValueError where there is no such device here, or it cannot run such requests.
    """
    config = complete_device(
        EngineConfig(
            max_num_seqs=max(point.batch_size + (point.prefill > 0) for point in points),
            max_model_len=max(longest_row(point, num_steps) for point in points),
            max_num_batched_tokens=max(point.batch_size + point.prefill for point in points),
            device=device,
            model=model,
            device_profile="",
        )
    )
    device_class(config).check(config)
    return config
