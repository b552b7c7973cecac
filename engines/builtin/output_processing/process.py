"""Output processing in a process of its own, over ZeroMQ, as vLLM's front end: the engine's end."""

import os
import pickle
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import finalize

import msgspec
import zmq

from engines import tied_process
from engines.builtin.delivery.stage import Processed, StepTokens
from engines.builtin.output_processing import messages
from engines.builtin.output_processing.late import Beside
from engines.builtin.request_table import Request
from engines.private_folder import private_folder
from engines.process_faults import has_ended, refuse_stopped
from engines.protocol import EngineConfig, EngineDeadError, Setting

_LOOP = "engines.builtin.output_processing.process_loop"
_LOOK_EVERY_MS = 200
"""How often it is looked at while it is waited for; ZeroMQ does not say that an end has gone."""


class OutputProcess(Beside):
    """Its heap, collector and GIL are its own. The objects that it makes stay there.

    Raises EngineDeadError from any call once the process is gone, stopped, or says what cannot be
    read; ValueError for a tokenizer that cannot be read.
    """

    makes_objects_here = False

    def __init__(self, config: EngineConfig) -> None:
        super().__init__()
        self._folder = Path(private_folder("output"))
        self._context = zmq.Context()
        self._to_process = self._socket(zmq.PUSH, "steps")
        self._from_process = self._socket(zmq.PULL, "outputs")
        self._done: deque[messages.Done] = deque()
        self._given: deque[StepTokens] = deque()
        self.wire_bytes = 0
        command = [sys.executable, "-P", "-m", _LOOP, str(self._folder), str(os.getpid())]
        self._process = tied_process.start_tied(command)
        self._end = finalize(self, _end, self._process, self._context, self._folder)
        try:
            self._send(messages.RemoteCall(pickle.dumps(config)))
            self._answer()
        except BaseException:
            self.shutdown()
            raise
        # Both ends have met, so that nothing is left of a process that is killed.
        shutil.rmtree(self._folder)

    def _socket(self, kind: int, name: str) -> "zmq.Socket[bytes]":
        socket: zmq.Socket[bytes] = self._context.socket(kind)
        socket.set_hwm(0)  # how much is under way is counted in steps
        socket.linger = 0
        socket.bind(f"ipc://{self._folder}/{name}")
        return socket

    def add(self, request: Request) -> None:
        """In its turn."""
        self._pending.add(request)
        self._send(messages.Begin.of(request))

    def remove(self, slot: int) -> None:
        """In its turn."""
        self._pending.remove(slot)
        self._send(messages.Remove(slot))

    def give(self, step: StepTokens) -> None:
        """In its turn."""
        self._given.append(step)
        self._send(messages.StepMessage.of(step))

    def take(self, *, wait: bool) -> Processed | None:
        """The oldest that is done."""
        if not self._done and (wait or self._from_process.poll(0)):
            self._receive()
        if not self._done:
            return None
        return self._done.popleft().processed(self._given.popleft())

    def settings(self) -> dict[str, Setting]:
        """None."""
        return {}

    def rpc(self, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        """Call it there, behind all that it was given; its ValueErrors are raised here."""
        self._send(messages.RemoteCall(pickle.dumps((function, args))))
        return [self._answer()]

    def shutdown(self) -> None:
        """End the process, with SIGKILL: all that it has is what it was given."""
        self._end()

    def _send(self, message: messages.Message) -> None:
        data = messages.encode(message)
        self.wire_bytes += len(data)
        while True:
            try:
                self._to_process.send(data, zmq.NOBLOCK)
            except zmq.Again:  # nobody is there yet, or any more: ZeroMQ would wait for the next
                self._await_reader()
            else:
                return

    def _await_reader(self) -> None:
        timeout = _LOOK_EVERY_MS / 1000
        readable, writable, _ = zmq.select([self._from_process], [self._to_process], [], timeout)
        if readable:  # what it had to say before it went
            self._receive()
        elif not writable:
            self._look()

    def _answer(self) -> Any:
        while (data := self._receive()) is None:
            pass
        return pickle.loads(data)

    def _receive(self) -> bytes | None:
        """Wait for a message: an answer's data, or None where a step has come."""
        while not self._from_process.poll(_LOOK_EVERY_MS):
            self._look()
        data = self._from_process.recv()
        self.wire_bytes += len(data)
        try:
            message = messages.to_engine(data)
        except (msgspec.DecodeError, ValueError) as error:
            raise EngineDeadError(
                f"the output process (pid {self._process.pid}) sent what cannot be read: {error}"
            ) from None
        if isinstance(message, messages.Done):
            self._done.append(message)
            return None
        if isinstance(message, messages.Refused):
            raise ValueError(message.sentence)
        if isinstance(message, messages.Failed):
            raise EngineDeadError(f"the output process failed: {message.line}")
        answer: bytes = message.data
        return answer

    def _look(self) -> None:
        """Raise EngineDeadError where nothing will come any more."""
        process = self._process
        code = process.poll()
        if code is not None and not self._from_process.poll(0):
            raise has_ended("output", process.pid, code)
        if code is None:
            refuse_stopped("output", process.pid)


def _end(
    process: "subprocess.Popen[bytes]", context: "zmq.Context[zmq.Socket[bytes]]", folder: Path
) -> None:
    process.kill()
    process.wait()
    context.destroy(linger=0)
    shutil.rmtree(folder, ignore_errors=True)
