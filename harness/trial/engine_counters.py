"""What an engine counts by itself, from the opening of the window on."""

from engines.protocol import StepEngine
from harness.trial.observation import device_work, risen


class EngineCounters:
    """``wire_bytes``, ``scheduler_stats``, ``wire_seconds`` and ``device_work`` of the window."""

    def __init__(self, engine: StepEngine) -> None:
        self._engine = engine
        self.wire_seconds, self.device_work = engine.wire_seconds(), engine.device_stats()
        self.wire_bytes, self.scheduler_stats = engine.wire_bytes, engine.scheduler_stats()

    def window_closes(self) -> None:
        """A step may be under way."""
        self.wire_bytes = self._engine.wire_bytes - self.wire_bytes
        self.scheduler_stats = risen(self.scheduler_stats, self._engine.scheduler_stats())

    def engine_is_idle(self, *, is_whole: bool) -> None:
        """What was abandoned is not in the window, but has crossed and been computed: then nothing
        is said.
        """
        if is_whole:
            self.wire_seconds = risen(self.wire_seconds, self._engine.wire_seconds())
            self.device_work = device_work(self.device_work, self._engine.device_stats())
        else:
            self.wire_seconds, self.device_work = {}, {}
