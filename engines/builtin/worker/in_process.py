"""The runner in the scheduler's own process: a call, no boundary."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engines.builtin.worker import ModelRunnerOutput, SchedulerOutput
from engines.protocol import EngineConfig, ReadyDevice

if TYPE_CHECKING:
    from engines.builtin.model import Parallel


class InProcessWorker:
    """vLLM's uniprocess executor."""

    wire_bytes = 0

    @staticmethod
    def contradiction(config: EngineConfig) -> str:
        """It is one rank."""
        if config.tensor_parallel_size == 1:
            return ""
        return (
            f"--axis tensor-parallel={config.tensor_parallel_size} in one process: each rank "
            "has its "
            "own; use --worker process"
        )

    def __init__(self, config: EngineConfig, parallel: "Parallel | None" = None) -> None:
        """``parallel``: the ranks that this is one of; None: it is alone."""
        from engines.builtin.worker.runner import ModelRunner

        self._config = config
        self._runner = ModelRunner(config) if parallel is None else ModelRunner(config, parallel)
        self._launched: deque[Any] = deque()
        self._waited = (0, 0)

    def wire_seconds(self) -> dict[str, float]:
        """Nothing crosses."""
        return {}

    def num_kv_tokens(self) -> int:
        """The device says."""
        return self._runner.device.num_kv_tokens(self._config)

    def initialize_cache(self, num_blocks: int) -> ReadyDevice:
        """The device does."""
        return self._runner.device.initialize_cache(num_blocks)

    def device_stats(self) -> dict[str, float]:
        """The device's own."""
        return self._runner.device.stats()

    def launch(self, scheduler_output: SchedulerOutput) -> None:
        """Start a step on this thread."""
        self._launched.append(self._runner.launch(scheduler_output))

    def wait(self) -> None:
        """Block in the device's own wait."""
        self._waited = self._runner.wait(self._launched[0])

    def handoff(self) -> ModelRunnerOutput:
        """Copy out and shape the oldest step's tokens."""
        return self._runner.handoff(self._launched.popleft(), self._waited)

    def rpc(self, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        """Nothing: there is no process but the engine's."""
        return []

    def shutdown(self) -> None:
        """Nothing to end."""
        return
