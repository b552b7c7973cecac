"""Output processing by the thread that schedules: within the step, or while the next one runs."""

from collections.abc import Callable
from typing import Any

from engines.builtin.delivery.choice import load_delivery
from engines.builtin.delivery.processor import OutputProcessor
from engines.builtin.delivery.stage import Processed, StepTokens
from engines.builtin.request_table import Request
from engines.protocol import EngineConfig, Setting


class Inline:
    """The next step is scheduled when the outputs of this one have been made."""

    num_under_way = 0
    is_exact = True
    makes_objects_here = True
    num_pending = 0
    wire_bytes = 0

    def __init__(self, config: EngineConfig) -> None:
        self._processor = OutputProcessor(load_delivery(config).stages(config))

    def add(self, request: Request) -> None:
        """At once."""
        self._processor.add(request)

    def process(self, step: StepTokens) -> tuple[Processed]:
        """The step itself."""
        return (self._processor.process(step),)

    def wait(self) -> tuple[Processed, ...]:
        """Nothing is ever pending."""
        return ()

    def remove(self, slot: int) -> None:
        """At once."""
        self._processor.remove(slot)

    def settings(self) -> dict[str, Setting]:
        """None."""
        return {}

    def rpc(self, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        """Nothing: it has no process."""
        return []

    def shutdown(self) -> None:
        """Nothing to end."""
        return


class Overlapped(Inline):
    """A step's outputs are made while the next one runs on the device."""

    num_under_way = 1
