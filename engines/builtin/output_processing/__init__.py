"""Where and when a step's tokens are processed; one mode a file, behind `OutputProcessing`."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from engines.builtin.delivery.stage import Processed, StepTokens
from engines.builtin.request_table import Request
from engines.protocol import EngineConfig, Setting


class OutputProcessing(Protocol):
    """Takes steps in their order and gives them back in it, at once or later.

    Later, a request may have ended by a stop string while the scheduler goes on with it; what it
    is given from then on is dropped.
    """

    makes_objects_here: bool
    """Whether a client in the engine's process is given the objects that it makes."""
    num_under_way: int
    """How many steps are still on the device when `Engine.step` returns."""
    is_exact: bool
    """Whether what it does depends on no other thread or process."""
    wire_bytes: int
    """Bytes that have crossed to and from a process of its own so far."""

    @property
    def num_pending(self) -> int:
        """How many steps it has been given and not given back."""
        ...

    def __init__(self, config: EngineConfig) -> None:
        """Make the delivery's stages. Raises ValueError for a tokenizer that cannot be read."""
        ...

    def add(self, request: Request) -> None:
        """Start a request's output; nobody else has its slot."""
        ...

    def process(self, step: StepTokens) -> Sequence[Processed]:
        """Take a step; those that have been processed by now, the oldest first."""
        ...

    def wait(self) -> Sequence[Processed]:
        """Block until the oldest of those pending has been processed, and give back all that are.

        Nothing where none is pending.
        """
        ...

    def remove(self, slot: int) -> None:
        """Let go of a request that was aborted; nothing is given back of it any more."""
        ...

    def settings(self) -> dict[str, Setting]:
        """What it has set in the interpreter, by name."""
        ...

    def rpc(self, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        """Call ``function(process, *args)`` in each process of its own."""
        ...

    def shutdown(self) -> None:
        """End what runs beside the engine; safe to call twice."""
        ...
