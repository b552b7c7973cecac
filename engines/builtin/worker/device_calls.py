"""What the scheduler asks of the device in a worker process, called there by `rpc`."""

from typing import Any


def num_kv_tokens(process: Any) -> int:
    """See `engines.builtin.device.Device.num_kv_tokens`."""
    found: int = process.runner.device.num_kv_tokens(process.config)
    return found


def initialize_cache(process: Any, num_blocks: int) -> None:
    """See `engines.builtin.device.Device.initialize_cache`."""
    process.runner.device.initialize_cache(num_blocks)


def device_stats(process: Any) -> dict[str, float]:
    """See `engines.protocol.WatchedEngine.device_stats`."""
    stats: dict[str, float] = process.runner.device.stats()
    return stats
