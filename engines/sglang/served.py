"""SGLang's API server before its scheduler and behind its detokenizer, in one process, no HTTP.

A request goes through the function behind ``/generate`` and the tokenizer manager, and crosses to
the scheduler as the release packs it, over ZeroMQ; what comes back are the lines of its stream.
Nothing here waits for a clock or another process, so a step does the same each time.
"""

import asyncio
import json
import select
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from itertools import repeat
from operator import and_, is_not
from types import SimpleNamespace
from typing import Any

import uvloop
import zmq

from engines.sglang.detokenizer import DetokenizerHere
from engines.sglang.stubs import stand_in_for

# Imported for tools and audio, which no request here has.
_PACKAGES = ("jsonschema", "soundfile")
_NEVER_SECONDS = 1e6


class ServerHere:
    """Has the methods of `Reader`, and takes requests as a client's.

    A step is over when the tokenizer manager asks for the next message and every stream that it
    woke has given its line. It has to be there before the scheduler, whose sockets find its own.
    """

    def __init__(self, args: Any, ports: Any) -> None:
        self._loop = _Loop()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._lines: dict[str, deque[bytes]] = {}
        self._num_missing = 0
        self._num_sent = 0
        self._error: Exception | None = None
        self._loop.run_until_complete(self._build(args, ports))
        self.detokenizer = DetokenizerHere(args, ports)

    async def _build(self, args: Any, ports: Any) -> None:
        stand_in_for(*_PACKAGES)
        module: Any = import_module("sglang.srt.entrypoints.http_server")
        manager = module.TokenizerManager(args, ports)
        module._global_state = SimpleNamespace(tokenizer_manager=manager)
        self._module = module
        self._manager = manager
        self._there = asyncio.Event()
        self._sent = asyncio.Event()
        self._readable: int = manager.recv_from_detokenizer.FD
        manager.recv_from_detokenizer = _Telling(manager.recv_from_detokenizer, self._one_less)
        manager.send_to_scheduler = _Telling(manager.send_to_scheduler, self._has_sent)

    @property
    def served_by(self) -> str:
        """The parts of SGLang's API server that requests go through, and what is missing."""
        kind = type(self._manager)
        return f"{kind.__module__}.{kind.__qualname__} behind /generate; no HTTP, no FastAPI"

    def receiving(self, socket: Any) -> Any:
        """In the place of the scheduler's socket: has what was sent when it is asked, and no more.

        Else it might look for a message that is still on its way.
        """
        return _Arrived(socket, self._take_sent)

    def _take_sent(self) -> bool:
        self._num_sent -= 1
        if self._num_sent < 0:
            self._num_sent = 0
            return False
        return True

    def _has_sent(self) -> None:
        self._num_sent += 1
        self._sent.set()

    def _one_less(self) -> None:
        self._num_missing -= 1
        if self._num_missing <= 0:
            self._there.set()

    def add(self, rid: str, prompt: list[int], sampling: Mapping[str, Any]) -> None:
        """Start the task of a request. Raises ValueError for one that SGLang refuses."""
        body = {"rid": rid, "input_ids": prompt, "sampling_params": dict(sampling), "stream": True}
        self._lines[rid] = deque(maxlen=2)
        self._sent.clear()
        self._tasks[rid] = self._loop.create_task(self._read(rid, body))
        self._loop.run_until_complete(self._sent.wait())
        self._raise()

    async def _read(self, rid: str, body: Mapping[str, Any]) -> None:
        lines = self._lines[rid]
        try:
            stream = self.lines_of(await self._module.generate_request(*await self._posted(body)))
            async for line in stream:
                lines.append(line)
                self._one_less()
        except Exception as error:  # raised to who steps or adds
            self._error = error
            self._there.set()
        finally:
            self._tasks.pop(rid, None)
            if not self._sent.is_set():
                said = b"".join(lines).decode().partition("\n")[0]
                self._error = self._error or ValueError(f"SGLang refuses a request: {said}")
                self._num_missing = 0
                self._sent.set()

    async def _posted(self, body: Mapping[str, Any]) -> tuple[Any, Any]:
        """What FastAPI hands over of a request that came with this body."""
        encoded = json.dumps(body).encode()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": encoded, "more_body": False}

        posted = self._module.Request({"type": "http", "headers": []}, receive)
        return self._module.GenerateReqInput(**await posted.json()), posted

    def lines_of(self, answer: Any) -> Any:
        """The lines of an answer's stream."""
        return answer.body_iterator

    def abort(self, rid: str) -> None:
        """As where a client hangs up."""
        self._loop.run_until_complete(self._abort(rid))

    async def _abort(self, rid: str) -> None:
        self._manager.abort_request(rid)
        if (task := self._tasks.get(rid)) is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def told(self, send: Callable[..., object]) -> Callable[..., None]:
        """In the place of what sends from the scheduler to the tokenizer manager: none is lost."""

        def tell(output: Any, *more: Any) -> None:
            self._num_missing += 1
            send(output, *more)

        return tell

    def see_through(self, output: Any) -> None:
        """Have a message of the scheduler become lines of the streams of its requests."""
        rows = list(map(self._tasks.__contains__, output.rids))
        ended = map(is_not, output.finished_reasons, repeat(None))
        self.detokenizer.answer()
        # Of each that ends a line more says so.
        self._num_missing += 1 + sum(rows) + sum(map(and_, rows, ended))
        self.finish()

    def finish(self) -> None:
        """Wait until all that was sent to the tokenizer manager has been seen through."""
        if self._num_missing > 0:
            select.select((self._readable,), (), ())
            self._there.clear()
            self._loop.run_until_complete(self._there.wait())
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def text(self, rid: str) -> str:
        """A finished request's whole text; "" of one that is forgotten."""
        lines = self._lines.get(rid)
        return json.loads(lines[0].removeprefix(b"data: "))["text"] if lines else ""

    def forget(self, rid: str) -> None:
        """Keep the last lines of its stream no longer."""
        self._lines.pop(rid, None)

    def shutdown(self) -> None:
        """End SGLang's tasks."""
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()


class _Loop(uvloop.Loop):
    """Its timers never fire, for steps here take no time: SGLang looks each few seconds whether a
    client is still there, or the process is to end. Signals remain the trial's.
    """

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Any = None
    ) -> Any:
        """At once, or never."""
        delay = delay and _NEVER_SECONDS
        return super().call_later(delay, callback, *args, context=context)

    def add_signal_handler(self, *_: Any) -> None:  # type: ignore[override]
        """None."""


class _Telling:
    """A socket of SGLang's that tells before it is asked for something."""

    def __init__(self, socket: Any, tell: Callable[[], None]) -> None:
        self._socket = socket
        self._tell = tell

    def __getattr__(self, name: str) -> Any:
        self._tell()
        return getattr(self._socket, name)


class _Arrived:
    """A socket that hands over what has been sent, when it is there."""

    def __init__(self, socket: Any, is_sent: Callable[[], bool]) -> None:
        self._socket = socket
        self._is_sent = is_sent

    def recv_pyobj(self, *_: Any, **__: Any) -> Any:
        """Up to 0.5.16."""
        return self._waited().recv_pyobj()

    def recv(self, *_: Any, **__: Any) -> Any:
        """Later."""
        return self._waited().recv()

    def _waited(self) -> Any:
        if not self._is_sent():
            raise zmq.Again
        return self._socket
