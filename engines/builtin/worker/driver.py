"""Rank 0 in the scheduler's process, the others in their own, as vLLM was at the time of #6241.

What a step is to compute is broadcast to them, and no tokens cross.
"""

from collections.abc import Callable
from typing import Any

from engines.builtin.transport import TransportPlan
from engines.builtin.wire.choice import wire_contradiction
from engines.builtin.worker import ModelRunnerOutput, SchedulerOutput, device_calls
from engines.builtin.worker.behind_wire import BehindWire
from engines.builtin.worker.in_process import InProcessWorker
from engines.builtin.worker.join import ranks_of
from engines.protocol import EngineConfig, ReadyDevice


class DriverWorker(BehindWire):
    """The ranks behind the wire answer nothing."""

    @staticmethod
    def contradiction(config: EngineConfig) -> str:
        """Alone it broadcasts to nobody."""
        if config.tensor_parallel_size > 1:
            return wire_contradiction(config)
        return (
            "--worker driver: its one rank would be in this process, and nothing would cross; use "
            "--axis tensor-parallel=2 or more, or --worker in-process"
        )

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(config, range(1, config.tensor_parallel_size))

    def _join(self, plan: TransportPlan) -> None:
        self._own = InProcessWorker(plan.config, ranks_of(plan, 0))

    def wire_seconds(self) -> dict[str, float]:
        """Of steps: there are no tokens to decode."""
        return self._ranks.wire_seconds(0)

    def num_kv_tokens(self) -> int:
        """What the rank with the least room says."""
        each: list[int] = self._ranks.rpc(device_calls.num_kv_tokens, ())
        return min(self._own.num_kv_tokens(), *each)

    def initialize_cache(self, num_blocks: int) -> ReadyDevice:
        """On every rank."""
        others = self._ranks.rpc(device_calls.initialize_cache, (num_blocks,))
        return device_calls.together([self._own.initialize_cache(num_blocks), *others])

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
