"""This process, as one of vLLM's: its role, its clock, and the moments within its step."""

import time
from collections.abc import Callable

from engines.protocol import PHASES


class HostProcess:
    """An `EngineProcess`; vLLM builds executor and worker itself, so they find each other here.

    ``phase_stamps`` is written by whoever is there when a phase of the step ends: the engine,
    the executor, or a worker in the same process.
    """

    def __init__(self) -> None:
        self.role = "engine"
        self.while_device_busy: Callable[[], object] | None = None
        self.clock: Callable[[], int] = time.perf_counter_ns
        self.phase_stamps = [0] * (len(PHASES) + 1)

    def ended(self, phase: str) -> None:
        """Stamp the end of a phase."""
        self.phase_stamps[1 + PHASES.index(phase)] = self.clock()


HERE = HostProcess()
