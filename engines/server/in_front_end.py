"""Output processing in the front end: the engine core's end of it."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from engines.builtin.delivery.stage import Processed, StepTokens
from engines.builtin.output_processing.late import Beside
from engines.builtin.request_table import Request
from engines.protocol import Setting
from engines.server import messages
from engines.server.mailbox import Mailbox

_NOT_SENT = np.empty(0, np.int32)


class InFrontEnd(Beside):
    """An `OutputProcessing` whose objects and texts are made where clients are served.

    The engine goes on while the front end is behind, as vLLM's does: up to `most_pending` steps.
    """

    makes_objects_here = False
    wire_bytes = 0
    most_pending = 1024

    def __init__(self, mailbox: Mailbox) -> None:
        super().__init__()
        self._mailbox = mailbox
        self._given: deque[StepTokens] = deque()

    def add(self, request: Request) -> None:
        """In its turn, without the prompt: that came from there."""
        self._pending.add(request)
        self._mailbox.send(
            messages.Begin(request.slot, request.request_index, _NOT_SENT, request.params)
        )

    def remove(self, slot: int) -> None:
        """In its turn."""
        self._pending.remove(slot)
        self._mailbox.send(messages.Remove(slot))

    def give(self, step: StepTokens) -> None:
        """In its turn."""
        self._given.append(step)
        self._mailbox.send(messages.StepMessage.of(step))

    def take(self, *, wait: bool) -> Processed | None:
        """The oldest that is done."""
        done = self._mailbox.done(wait=wait)
        return None if done is None else done.processed(self._given.popleft())

    def settings(self) -> dict[str, Setting]:
        """None."""
        return {}

    def rpc(self, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        """Nothing: the front end is not the core's to call."""
        return []

    def shutdown(self) -> None:
        """Nothing to end."""
