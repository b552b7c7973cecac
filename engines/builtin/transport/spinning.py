"""How long an end may look for a message before it parks."""

import os

from engines.builtin.registries import OUTPUT_PROCESSING
from engines.builtin.wire.names import asked_seconds
from engines.protocol import EngineConfig

_SECONDS = 0.002
"""With it vLLM's hosts left most of what its second had burnt (#52814)."""


def spin_seconds(config: EngineConfig) -> float:
    """As asked for; of itself none where the engine's processes outnumber the cores."""
    asked = asked_seconds(config)
    if asked is None:
        return 0.0 if _outnumber(config) else _SECONDS
    return asked


def spinning_contradiction(config: EngineConfig) -> str:
    """Why an end may not spin as long as was asked for, in one sentence, or ""."""
    if asked_seconds(config) and _outnumber(config):
        return (
            f"--axis wire-spin={config.wire_spin}: {_num_processes(config)} processes on "
            f"{_num_cores()} cores would take from one another what they burn; use 0, or fewer "
            "ranks"
        )
    return ""


def _outnumber(config: EngineConfig) -> bool:
    return _num_processes(config) > _num_cores()


def _num_processes(config: EngineConfig) -> int:
    has_own = OUTPUT_PROCESSING.load(config.output_processing).makes_objects_here
    return 1 + config.tensor_parallel_size + (not has_own)


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
