"""This process, as one of vLLM's: its role, its clock, and the moments within its step."""

import pickle
import time
from collections.abc import Callable
from typing import Any

from engines.protocol import PHASES


class HostProcess:
    """An `EngineProcess`; vLLM builds executor and worker itself, so they find each other here.

    ``phase_stamps`` is written by whoever is there when a phase of the step ends: the engine,
    the executor, or a worker in the same process. ``on_message`` is called with the direction of
    each message between scheduler and workers, and its pickle. ``stages``: those that are counted.
    """

    def __init__(self) -> None:
        self.role = "engine"
        self.while_device_busy: Callable[[], object] | None = None
        self.on_message: Callable[[str, bytes], object] | None = None
        self.clock: Callable[[], int] = time.perf_counter_ns
        self.phase_stamps = [0] * (len(PHASES) + 1)
        self.stages: Any = None

    def ended(self, phase: str) -> None:
        """Stamp the end of a phase."""
        self.phase_stamps[1 + PHASES.index(phase)] = self.clock()

    def crosses(self, direction: str, message: Any) -> None:
        """Show a message, pickled as vLLM's executor does for its queue, to who asked for it."""
        if self.on_message is not None:
            self.on_message(direction, pickle.dumps(message, 5))


HERE = HostProcess()
