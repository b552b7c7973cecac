"""The engine as the front end's handlers see it: requests in, a stream of outputs each."""

import asyncio
import pickle
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from engines.builtin.delivery.collector import RequestOutputCollector
from engines.builtin.delivery.outputs import OutputChunk
from engines.protocol import EngineConfig, EngineDeadError, FinishReason, Int32Array, SamplingParams
from engines.server import messages
from engines.server.calls import everywhere
from engines.server.core_process import CoreProcess
from engines.server.output_handler import OutputHandler


class EngineClient:
    """vLLM's `AsyncLLM`: an engine core beside it, output processing within.

    Raises ValueError for a tokenizer that cannot be read. ``failure``: why nothing will come any
    more, "" as long as the core lives; ``is_dead`` is set with it.
    """

    role = "frontend"
    while_device_busy: Callable[[], object] | None = None

    def __init__(self, config: EngineConfig) -> None:
        self._handler = OutputHandler(config)
        self._streams: dict[int, RequestOutputCollector] = {}
        self._waiting: set[int] = set()
        self._running: set[int] = set()
        self._calls: deque[asyncio.Future[Any]] = deque()
        self._some_gone = asyncio.Event()
        self.failure = ""
        self.is_dead = asyncio.Event()
        self._core = CoreProcess(config)
        self._watch: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return when the engine is there.

        Raises ValueError where it cannot be built as asked, EngineDeadError where its process
        ends.
        """
        self._watch = asyncio.create_task(self._until_dead(self._core.watch()))
        first = asyncio.create_task(self._core.receive())
        dead = asyncio.create_task(self.is_dead.wait())
        await asyncio.wait({first, dead}, return_when=asyncio.FIRST_COMPLETED)
        dead.cancel()
        if not first.done():
            first.cancel()
            raise EngineDeadError(self.failure)
        message = first.result()
        if isinstance(message, messages.Refused):
            raise ValueError(message.sentence)
        if isinstance(message, messages.Failed):
            raise EngineDeadError(f"the engine core cannot start: {message.line}")
        assert isinstance(message, messages.Ready)
        self._listener = asyncio.create_task(self._until_dead(self._listen()))

    @property
    def core_pid(self) -> int:
        """The process of the engine core."""
        return self._core.pid

    @property
    def num_running(self) -> int:
        """Requests that the scheduler has begun, those that it has preempted included."""
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        """Requests that it has not begun."""
        return len(self._waiting)

    @property
    def num_open(self) -> int:
        """Requests whose outputs somebody still reads; the engine may not have forgotten others."""
        return len(self._streams)

    @property
    def num_tokens(self) -> int:
        """Of all outputs so far."""
        return self._handler.num_tokens

    def knows(self, request_index: int) -> bool:
        """Whether the engine still has a request of this number, ended or not."""
        return request_index in self._running or request_index in self._waiting

    def is_open(self, request_index: int) -> bool:
        """Whether somebody still reads the outputs of this number."""
        return request_index in self._streams

    def add(
        self, request_index: int, prompt: Int32Array, params: SamplingParams, priority: int
    ) -> RequestOutputCollector:
        """Queue a request, whose number the engine does not know; its stream."""
        self._waiting.add(request_index)
        stream = self._streams[request_index] = RequestOutputCollector()
        if self.failure:
            stream.put(_aborted(request_index))
        else:
            self._core.send(messages.Add(request_index, prompt, params, priority))
        return stream

    def leave(self, request_index: int, *, is_finished: bool) -> None:
        """Nobody reads its stream any more; the engine ends it, if it has not."""
        del self._streams[request_index]
        if not is_finished and not self.failure and self.knows(request_index):
            self._core.send(messages.Abort(request_index))

    def abort_all(self) -> None:
        """End every request; its reader is told."""
        for index, stream in self._streams.items():
            if self.knows(index):
                stream.put(_aborted(index))

    async def gone(self) -> None:
        """Return when the engine has forgotten a request, or at once where it is dead."""
        if not self.failure:
            self._some_gone.clear()
            await self._some_gone.wait()

    async def idle(self) -> None:
        """Return when the engine knows no request any more, and nobody reads."""
        while self._running or self._waiting:
            if self.failure:
                return
            await self.gone()

    async def call_core(self, function: Callable[..., Any], *args: Any) -> Any:
        """``function(engine, *args)`` between two of its steps.

        Raises ValueError where the function does, EngineDeadError where the process has ended.
        """
        if self.failure:
            raise EngineDeadError(self.failure)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls.append(answer)
        self._core.send(messages.RemoteCall(pickle.dumps((function, args))))
        return await answer

    async def collective_rpc(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """``function(process, *args)`` in the front end, the core and its workers, in this order.

        Raises as `call_core`.
        """
        return [function(self, *args), *await self.call_core(everywhere, function, *args)]

    async def stop(self) -> None:
        """End the core."""
        watch, listener = self._watch, self._listener
        if watch is not None:
            watch.cancel()
        if not self.failure:
            await self._core.stop()  # what is under way is processed still
        if listener is not None:
            listener.cancel()
        self._core.kill()

    async def _listen(self) -> None:
        while True:
            self._take(await self._core.receive())
            # Where more lies there to be received nothing else would run: clients get each step's
            # tokens before those of the next are looked at.
            await asyncio.sleep(0)

    async def _until_dead(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except EngineDeadError as error:
            self._fail(str(error))
        except Exception as error:  # no request would ever be answered again
            self._fail(f"output processing failed: {type(error).__name__}: {error}")

    def _take(self, message: Any) -> None:
        if isinstance(message, messages.StepMessage):
            self._step(message)
        elif isinstance(message, messages.Begin):
            self._waiting.discard(message.request_index)
            self._running.add(message.request_index)
            self._handler.begin(message)
        elif isinstance(message, messages.Gone):
            self._forget(message.request_indices)
        elif isinstance(message, messages.Remove):
            self._handler.remove(message)
        elif isinstance(message, messages.NotAdded):
            self._refuse(message)
        elif isinstance(message, messages.CallAnswer | messages.Refused):
            self._answer(message)
        elif isinstance(message, messages.Failed):
            raise EngineDeadError(f"the engine core failed: {message.line}")

    def _step(self, message: messages.StepMessage) -> None:
        done, outputs = self._handler.step(message)
        self._core.send(done)
        streams = self._streams
        for output in outputs:
            if (stream := streams.get(output.request_index)) is not None:
                stream.put(output)

    def _forget(self, indices: list[int]) -> None:
        self._running.difference_update(indices)
        self._waiting.difference_update(indices)
        self._some_gone.set()

    def _answer(self, message: messages.CallAnswer | messages.Refused) -> None:
        call = self._calls.popleft()
        if call.done():  # who asked has left: a handler whose client hung up is cancelled
            return
        if isinstance(message, messages.Refused):
            call.set_exception(ValueError(message.sentence))
        else:
            call.set_result(pickle.loads(message.data))

    def _refuse(self, message: messages.NotAdded) -> None:
        """The checks of bodies let nothing through that comes to this; a reader must not wait."""
        index = message.request_index
        self._forget([index])
        if (stream := self._streams.get(index)) is not None:
            stream.put(_aborted(index))

    def _fail(self, sentence: str) -> None:
        if self.failure:
            return
        self.failure = sentence
        self.abort_all()
        for answer in self._calls:
            if not answer.done():
                answer.set_exception(EngineDeadError(sentence))
        self._some_gone.set()
        self.is_dead.set()


def _aborted(request_index: int) -> OutputChunk:
    return OutputChunk(request_index, FinishReason.ABORT)
