"""vLLM's own client of an engine core behind its API server, with the core in the same process.

What crosses is encoded and decoded on both sides, as between two processes; the sockets, the
threads at them and the core's loop are what is missing. The core keeps what it has read of the
environment, since 0.13.0; the API server, in a process of its own, reads a variable each time.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import zmq
from vllm import envs
from vllm.v1.engine import EngineCoreOutputs, EngineCoreRequest, EngineCoreRequestType
from vllm.v1.engine.core import EngineCore
from vllm.v1.engine.core_client import (
    AsyncMPClient,
    BackgroundResources,
    EngineCoreClient,
    InprocClient,
)
from vllm.v1.serial_utils import MsgpackDecoder, MsgpackEncoder


class CoreHere(AsyncMPClient):  # type: ignore[misc]  # vLLM is not there for the checker
    """Everything of ``AsyncMPClient`` but what `__init__` starts.

    ``engine_core``: the ``EngineCore``. ``outputs``: those of the last step, as they were decoded.
    ``sent`` is set when something was asked of the core, ``seen_through`` when the front end has
    seen a step's outputs through.
    """

    def __init__(self, vllm_config: Any, executor_class: Any, log_stats: bool, **_: Any) -> None:
        self.engine_core = EngineCore(vllm_config, executor_class, log_stats)
        self._core_reads = vars(envs)["__getattr__"]
        self._front_end_reads = getattr(self._core_reads, "__wrapped__", self._core_reads)
        envs.__getattr__ = self._front_end_reads
        self.outputs: list[Any] = []
        self.sent = asyncio.Event()
        self.seen_through = asyncio.Event()
        self._is_processing = False
        self._asked: deque[tuple[Any, ...]] = deque()
        self._answers: asyncio.Queue[tuple[zmq.Frame]] = asyncio.Queue()
        self._buffer = bytearray()
        self._core_encoder = MsgpackEncoder()
        self._core_decoders = {
            EngineCoreRequestType.ADD.value: (MsgpackDecoder(EngineCoreRequest), _ADD),
            EngineCoreRequestType.ABORT.value: (MsgpackDecoder(), _ABORT),
        }
        self._set_up_as_vllms(vllm_config)

    def _set_up_as_vllms(self, vllm_config: Any) -> None:
        """What vLLM's `__init__` sets, of whatever release."""
        self.vllm_config = vllm_config
        self.resources = BackgroundResources(ctx=None)
        self.resources.output_socket = SimpleNamespace(recv_multipart=self._receive)
        self.input_socket = SimpleNamespace(send_multipart=self._send)
        self.encoder = MsgpackEncoder()
        self.decoder = MsgpackDecoder(EngineCoreOutputs)
        self.core_engine = b"\0\0"
        self.core_engines = [self.core_engine]
        self.engine_ranks_managed = [0]
        self.client_count, self.client_index = 1, 0
        self.engines_running = False
        self.outputs_queue: asyncio.Queue[Any] = asyncio.Queue()
        self.utility_results: dict[int, Any] = {}
        self.pending_messages: deque[Any] = deque()

    def _receive(self, copy: bool) -> Any:
        return self._answers.get()

    def _send(self, frames: tuple[Any, ...], **_: Any) -> Any:
        """In the place of the input socket: kept for the step that comes, as the core's queue."""
        self._asked.append(frames[1:])
        self.sent.set()
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sent.set_result(None)
        return sent

    def step(self) -> bool:
        """Take what was asked and do a step of the core; whether the front end gets something."""
        envs.__getattr__ = self._core_reads
        while self._asked:
            kind, *frames = self._asked.popleft()
            decoder, do = self._core_decoders[bytes(kind)]
            do(self, decoder.decode(frames))
        outputs = InprocClient.get_output(self)
        envs.__getattr__ = self._front_end_reads
        self.outputs = []
        if not (outputs.outputs or outputs.scheduler_stats):
            return False
        self.seen_through.clear()
        (encoded,) = self._core_encoder.encode_into(outputs, self._buffer)
        self._answers.put_nowait((zmq.Frame(bytes(encoded)),))
        return True

    async def get_output_async(self) -> Any:
        """As vLLM's; asked for again, all that the last outputs have woken is in the loop's queue,
        and who waits for `seen_through` comes behind it.
        """
        if self._is_processing:
            asyncio.get_running_loop().call_soon(self.seen_through.set)
        outputs = await super().get_output_async()
        self._is_processing = True
        self.outputs = outputs.outputs
        return outputs

    async def get_supported_tasks_async(self) -> Any:
        """Asked once, before requests come."""
        return self.engine_core.get_supported_tasks()

    def shutdown(self, timeout: float | None = None) -> None:
        """End the core; safe to call twice."""
        if (task := self.resources.output_queue_task) is not None:
            task.cancel()
        self.engine_core.shutdown()


_ADD: Callable[[Any, Any], None] = InprocClient.add_request
_ABORT: Callable[[Any, Any], None] = InprocClient.abort_requests


@contextmanager
def core_here() -> Iterator[None]:
    """Let an ``AsyncLLM``, built inside, have its engine core in this process."""
    own = EngineCoreClient.__dict__["make_async_mp_client"]
    EngineCoreClient.make_async_mp_client = staticmethod(_make)
    try:
        yield
    finally:
        EngineCoreClient.make_async_mp_client = own


def _make(vllm_config: Any, executor_class: Any, log_stats: bool, *_: Any, **__: Any) -> CoreHere:
    return CoreHere(vllm_config, executor_class, log_stats)
