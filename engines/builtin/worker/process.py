"""The runner in a process of its own, behind a wire: both ends of the boundary."""

import os
import pickle
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import Any

from engines.builtin.registries import WIRES
from engines.builtin.worker import ModelRunnerOutput, SchedulerOutput
from engines.builtin.worker.channel import Channel, ChannelClosedError
from engines.builtin.worker.runner import Runner
from engines.protocol import EngineConfig, EngineDeadError
from engines.unix import die_with_parent

_STEP, _RPC, _ERROR = b"S", b"R", b"E"


class ProcessWorker:
    """The scheduler's end. Raises EngineDeadError from any call once the process is gone."""

    def __init__(self, config: EngineConfig) -> None:
        here, there = socket.socketpair()
        command = [sys.executable, "-P", "-m", __name__, str(there.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[there.fileno()])
        there.close()
        self._channel = Channel(here)
        self._wire = WIRES.load(config.wire)()
        self._outputs: list[bytes] = []
        self._launched = 0
        try:
            self._call(_RPC, pickle.dumps(config))
        except EngineDeadError:
            self.shutdown()
            raise

    @property
    def wire_bytes(self) -> int:
        """Bytes both ways, headers included."""
        return self._channel.num_bytes

    def launch(self, scheduler_output: SchedulerOutput) -> None:
        """Encode and send a step; the socket may take it before the worker does."""
        self._send(_STEP + self._wire.encode(scheduler_output))
        self._launched += 1

    def wait(self) -> None:
        """Block until the oldest step's bytes are here."""
        self._outputs.append(self._receive())
        self._launched -= 1

    def handoff(self) -> ModelRunnerOutput:
        """Decode the oldest step's bytes."""
        output: ModelRunnerOutput = self._wire.decode(self._outputs.pop())
        return output

    def rpc(self, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        """Call in the worker's process. Raises RuntimeError while a step is under way."""
        if self._launched:
            raise RuntimeError("rpc while a step is under way")
        return [pickle.loads(self._call(_RPC, pickle.dumps((function, args))))]

    def shutdown(self) -> None:
        """Close the socket, which ends the worker's loop; kill it if that takes 5 s."""
        self._channel.close()  # the worker's loop ends when its socket does
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _call(self, tag: bytes, payload: bytes) -> bytes:
        self._send(tag + payload)
        return self._receive()

    def _send(self, message: bytes) -> None:
        try:
            self._channel.send(message)
        except ChannelClosedError:
            raise self._death() from None

    def _receive(self) -> bytes:
        try:
            message = self._channel.recv()
        except ChannelClosedError:
            raise self._death() from None
        if message[:1] == _ERROR:
            raise EngineDeadError(f"the worker process failed: {message[1:].decode()}")
        return message[1:]

    def _death(self) -> EngineDeadError:
        code = self._process.wait()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return EngineDeadError(f"the worker process (pid {self._process.pid}) {how}")


class _WorkerProcess:
    """The runner's end: the loop of the process."""

    role = "worker"

    def __init__(self, channel: Channel) -> None:
        self.while_device_busy: Callable[[], object] | None = None
        self._channel = channel
        config: EngineConfig = pickle.loads(channel.recv()[1:])
        self._runner = Runner(config)
        self._wire = WIRES.load(config.wire)()
        channel.send(_RPC)

    def run(self) -> None:
        while True:
            message = self._channel.recv()
            if message[:1] == _STEP:
                self._channel.send(_STEP + self._step(message[1:]))
            else:
                function, args = pickle.loads(message[1:])
                self._channel.send(_RPC + pickle.dumps(function(self, *args)))

    def _step(self, data: bytes) -> bytes:
        step = self._runner.launch(self._wire.decode(data))
        if self.while_device_busy is not None:
            self.while_device_busy()
        waited = self._runner.wait(step)
        output: bytes = self._wire.encode(self._runner.handoff(step, waited))
        return output


def main(descriptor: int) -> None:
    """Serve steps until the other end closes; die with the process that started this one."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    channel = Channel(socket.socket(fileno=descriptor))
    try:
        _WorkerProcess(channel).run()
    except ChannelClosedError:
        return
    except Exception:
        last = traceback.format_exc().strip().splitlines()[-1]
        channel.send(_ERROR + last.encode())


if __name__ == "__main__":
    main(int(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # torch's teardown takes longer than the step did
