"""What the scheduler asks of worker processes, called there by `rpc`."""

from collections.abc import Sequence
from typing import Any

from engines.protocol import ReadyDevice


def num_kv_tokens(process: Any) -> int:
    """See `engines.builtin.device.Device.num_kv_tokens`."""
    found: int = process.runner.device.num_kv_tokens(process.config)
    return found


def initialize_cache(process: Any, num_blocks: int) -> ReadyDevice:
    """See `engines.builtin.device.Device.initialize_cache`."""
    ready: ReadyDevice = process.runner.device.initialize_cache(num_blocks)
    return ready


def together(each: Sequence[ReadyDevice]) -> ReadyDevice:
    """Of ranks side by side: the least room, and the first one's seconds."""
    return each[0]._replace(num_fit=min(one.num_fit for one in each))


def device_stats(process: Any) -> dict[str, float]:
    """See `engines.protocol.StepEngine.device_stats`."""
    stats: dict[str, float] = process.runner.device.stats()
    return stats


def wire_ns(process: Any) -> tuple[int, int, int]:
    """Spent so far on decoding steps, on encoding tokens and, of CPU time, on spinning."""
    found: tuple[int, int, int] = process.wire_ns()
    return found


def added(each: Sequence[dict[str, float]]) -> dict[str, float]:
    """The sum over processes. Without what one does not say: a GPU without room for the
    measurement has no ceilings.
    """
    said = [name for name in each[0] if all(name in stats for stats in each)]
    return {name: sum(stats[name] for stats in each) for name in said}
