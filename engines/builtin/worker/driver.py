"""Rank 0 in the scheduler's process, the others in their own, as vLLM was at #6241: what a step is
to compute is broadcast to them, and no tokens cross.
"""

from collections.abc import Callable
from typing import Any

from engines.builtin.wire.choice import contradiction as wire_contradiction
from engines.builtin.worker import ModelRunnerOutput, SchedulerOutput, device_calls
from engines.builtin.worker.in_process import InProcessWorker
from engines.builtin.worker.join import ranks_of
from engines.builtin.worker.ranks import Ranks
from engines.protocol import EngineConfig


class DriverWorker:
    """Raises EngineDeadError from any call once a process is gone."""

    @staticmethod
    def contradiction(config: EngineConfig) -> str:
        """Alone it broadcasts to nobody."""
        if config.tensor_parallel_size > 1:
            return wire_contradiction(config)
        return (
            "--worker driver: its one rank would be in this process, and nothing would cross; use "
            "--tensor-parallel 2 or more, or --worker in-process"
        )

    def __init__(self, config: EngineConfig) -> None:
        self._ranks = Ranks(config, range(1, config.tensor_parallel_size))
        try:
            self._ranks.start()
            self._own = InProcessWorker(config, ranks_of(self._ranks.plan, 0))
            self._ranks.meet()
        except BaseException:
            self._ranks.shutdown()
            raise

    @property
    def wire_bytes(self) -> int:
        """Bytes both ways, headers included."""
        return self._ranks.num_bytes

    def wire_seconds(self) -> dict[str, float]:
        """Of steps: there are no tokens to decode."""
        return self._ranks.wire_seconds(0)

    def show_messages(self, to: Callable[[str, bytes], object] | None) -> None:
        """What the other ranks are sent; they answer nothing."""
        self._ranks.on_message = to

    def message_fields(self, direction: str, message: bytes) -> dict[str, int]:
        """As the wire says."""
        return self._ranks.message_fields(direction, message)

    def num_kv_tokens(self) -> int:
        """What the rank with the least room says."""
        each: list[int] = self._ranks.rpc(device_calls.num_kv_tokens, ())
        return min(self._own.num_kv_tokens(), *each)

    def initialize_cache(self, num_blocks: int) -> None:
        """On every rank."""
        self._ranks.rpc(device_calls.initialize_cache, (num_blocks,))
        self._own.initialize_cache(num_blocks)

    def device_stats(self) -> dict[str, float]:
        """The sum over the ranks."""
        others = self._ranks.rpc(device_calls.device_stats, ())
        return device_calls.added([self._own.device_stats(), *others])

    def launch(self, scheduler_output: SchedulerOutput) -> None:
        """The others first: they get ready while this one does."""
        self._ranks.send_step(scheduler_output)
        self._own.launch(scheduler_output)

    def wait(self) -> None:
        """Block in this rank's device."""
        self._own.wait()
        self._ranks.hear()

    def handoff(self) -> ModelRunnerOutput:
        """This rank's."""
        output = self._own.handoff()
        self._ranks.wire.tokens_stay(output)
        return output

    def rpc(self, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        """In the other ranks' processes."""
        return self._ranks.rpc(function, args)

    def shutdown(self) -> None:
        """End the other ranks."""
        self._ranks.shutdown()
        self._own.shutdown()
