"""The engine core's process, as the front end sees it: started, heard, watched, ended."""

import asyncio
import os
import pickle
import shutil
import subprocess
import time
from typing import Any, NoReturn

import msgspec
import zmq
import zmq.asyncio

from engines import tied_process
from engines.builtin.output_processing.messages import encode
from engines.builtin.release import launch_builtin
from engines.private_folder import private_folder
from engines.process_faults import has_ended, refuse_stopped
from engines.protocol import EngineConfig, EngineDeadError
from engines.server import messages
from engines.server.mailbox import OUTPUTS, REQUESTS

_LOOK_EVERY_SECONDS = 0.2
_STOP_SECONDS = 5.0


class CoreProcess:
    """Two sockets and a process that Linux ends with this one, whatever becomes of it."""

    def __init__(self, config: EngineConfig) -> None:
        self._folder = private_folder("core")
        self._context = zmq.asyncio.Context()
        self._outputs = self._context.socket(zmq.PULL)
        # Not of asyncio: sending never waits, for the end that connects has a queue from then on.
        self._requests = zmq.Context(self._context).socket(zmq.PUSH)
        for socket in (self._outputs, self._requests):
            socket.set_hwm(0)
            socket.linger = 0
        self._outputs.bind(f"ipc://{self._folder}/{OUTPUTS}")
        self._requests.connect(f"ipc://{self._folder}/{REQUESTS}")
        try:
            self._process = self._start()
        except BaseException:
            self._let_go()
            raise
        self.send(messages.RemoteCall(pickle.dumps(config)))

    def _start(self) -> "subprocess.Popen[bytes]":
        interpreter, environment = launch_builtin("", "")
        command = [interpreter, "-P", "-m", "engines.server.core", self._folder, str(os.getpid())]
        return tied_process.start_tied(
            command,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the front end's to handle
        )

    @property
    def pid(self) -> int:
        """The process's."""
        return self._process.pid

    def send(self, message: messages.Message) -> None:
        """In its turn."""
        self._requests.send(encode(message), zmq.NOBLOCK)

    async def receive(self) -> Any:
        """The next message. Raises EngineDeadError for one that cannot be read."""
        try:
            message = messages.to_front_end(await self._outputs.recv())
        except (msgspec.DecodeError, ValueError) as error:
            raise EngineDeadError(
                f"the engine core (pid {self.pid}) sent what cannot be read: {error}"
            ) from None
        if isinstance(message, messages.Ready):
            # It has its configuration and we its answer: both sockets have met, so that nothing is
            # left of a server that is killed.
            shutil.rmtree(self._folder, ignore_errors=True)
        return message

    async def watch(self) -> NoReturn:
        """Raise EngineDeadError once nothing will come any more: ZeroMQ does not say so."""
        while (code := self._process.poll()) is None:
            refuse_stopped("engine core", self.pid)
            await asyncio.sleep(_LOOK_EVERY_SECONDS)
        await asyncio.sleep(_LOOK_EVERY_SECONDS)  # what it had to say is read first
        raise has_ended("engine core", self.pid, code)

    async def stop(self) -> None:
        """Ask it to end, and give it a moment."""
        self.send(messages.Stop())
        until = time.monotonic() + _STOP_SECONDS
        while self._process.poll() is None and time.monotonic() < until:
            await asyncio.sleep(0.01)

    def kill(self) -> None:
        """End it and let go of all that was shared with it; safe to call twice."""
        self._process.kill()
        self._process.wait()
        self._let_go()

    def _let_go(self) -> None:
        self._requests.close(0)  # else the context would wait for what is still to be sent
        self._outputs.close(0)
        self._context.term()
        shutil.rmtree(self._folder, ignore_errors=True)
