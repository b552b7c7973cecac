"""What the front end asks the engine core to do in all of its processes."""

from collections.abc import Callable
from typing import Any

from engines.protocol import StepEngine


def everywhere(engine: StepEngine, function: Callable[..., Any], *args: Any) -> list[Any]:
    """Call ``function(process, *args)`` in the core's process and in those of its workers."""
    return engine.collective_rpc(function, *args)
