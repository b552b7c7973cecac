"""The runner in processes of its own, one a rank, behind a wire: the scheduler's end."""

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from engines.builtin.wire import WireError
from engines.builtin.wire.choice import wire_contradiction
from engines.builtin.worker import ModelRunnerOutput, SchedulerOutput, device_calls
from engines.builtin.worker.behind_wire import BehindWire
from engines.protocol import EngineConfig, EngineDeadError, ReadyDevice


class ProcessWorker(BehindWire):
    """Every rank is sent the same; the first one's tokens are the step's, as in vLLM."""

    @staticmethod
    def contradiction(config: EngineConfig) -> str:
        """The wire's."""
        return wire_contradiction(config)

    def __init__(self, config: EngineConfig) -> None:
        self._outputs: deque[memoryview] = deque()
        self._num_under_way = 0
        self._decode_ns = 0
        super().__init__(config, range(config.tensor_parallel_size))

    def wire_seconds(self) -> dict[str, float]:
        """Here and, of each kind together, in the ranks."""
        return self._ranks.wire_seconds(self._decode_ns)

    def num_kv_tokens(self) -> int:
        """What the rank with the least room says."""
        each: list[int] = self.rpc(device_calls.num_kv_tokens, ())
        return min(each)

    def initialize_cache(self, num_blocks: int) -> ReadyDevice:
        """On every rank."""
        return device_calls.together(self.rpc(device_calls.initialize_cache, (num_blocks,)))

    def device_stats(self) -> dict[str, float]:
        """The sum over the ranks: together they are the device."""
        return device_calls.added(self.rpc(device_calls.device_stats, ()))

    def launch(self, scheduler_output: SchedulerOutput) -> None:
        """Encode and send a step; the way may take it before a rank does."""
        self._ranks.send_step(scheduler_output)
        self._num_under_way += 1

    def wait(self) -> None:
        """Block until the oldest step's bytes are here."""
        if not self._outputs:
            self._receive()

    def _receive(self) -> None:
        self._outputs.append(self._ranks.receive_tokens())
        self._num_under_way -= 1

    def handoff(self) -> ModelRunnerOutput:
        """Decode the oldest step's bytes."""
        began = time.perf_counter_ns()
        try:
            output = self._ranks.wire.decode_tokens(self._outputs.popleft())
        except WireError as error:
            raise EngineDeadError(f"a worker process sent what cannot be read: {error}") from None
        self._decode_ns += time.perf_counter_ns() - began
        return output

    def rpc(self, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        """Call in each worker process, whose ValueErrors are raised here.

        What steps under way yield is awaited first: on a channel it would come before the answer.
        """
        while self._num_under_way:
            self._receive()
        return self._ranks.rpc(function, args)
