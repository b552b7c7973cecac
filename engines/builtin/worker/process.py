"""The runner in processes of its own, one a rank, behind a wire: the scheduler's end."""

import pickle
import select
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from engines.builtin.registries import WIRES
from engines.builtin.wire import Buffer, Wire
from engines.builtin.worker import ModelRunnerOutput, SchedulerOutput, device_calls
from engines.builtin.worker.channel import Channel, ChannelClosedError
from engines.builtin.worker.messages import ERROR, LOST, REFUSED, RPC, STEP, Setup
from engines.protocol import EngineConfig, EngineDeadError

_LOOP = "engines.builtin.worker.process_loop"


class ProcessWorker:
    """Every rank is sent the same; the first one's tokens are the step's, as in vLLM.

    Raises EngineDeadError from any call once a process is gone.
    """

    def __init__(self, config: EngineConfig) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._channels: list[Channel] = []
        self._wire: Wire = WIRES.load(config.wire)(config)
        self._outputs: list[memoryview] = []
        self._under_way: deque[tuple[SchedulerOutput, Sequence[Buffer]]] = deque()
        self._num_sent = 0
        self._folder = Path(mkdtemp(prefix="gcbench-ranks-"))
        try:
            for rank in range(config.tensor_parallel_size):
                self._start(Setup(config, rank, str(self._folder / "rendezvous")))
            for channel in self._channels:
                self._receive(channel)
        except (EngineDeadError, ValueError):
            self.shutdown()
            raise

    def _start(self, setup: Setup) -> None:
        here, there = Channel.pair()
        command = [sys.executable, "-P", "-m", _LOOP, str(there.fileno())]
        self._processes.append(subprocess.Popen(command, pass_fds=[there.fileno()]))
        there.close()
        self._channels.append(here)
        self._send(here, RPC + pickle.dumps(setup))

    @property
    def wire_bytes(self) -> int:
        """Bytes both ways, headers included."""
        return sum(channel.num_bytes for channel in self._channels)

    def num_kv_tokens(self) -> int:
        """What the rank with the least room says."""
        each: list[int] = self.rpc(device_calls.num_kv_tokens, ())
        return min(each)

    def initialize_cache(self, num_blocks: int) -> None:
        """On every rank."""
        self.rpc(device_calls.initialize_cache, (num_blocks,))

    def device_stats(self) -> dict[str, float]:
        """The sum over the ranks: together they are the device. Without what one does not say."""
        each: list[dict[str, float]] = self.rpc(device_calls.device_stats, ())
        said = [name for name in each[0] if all(name in stats for stats in each)]
        return {name: sum(stats[name] for stats in each) for name in said}

    def launch(self, scheduler_output: SchedulerOutput) -> None:
        """Encode and send a step; the socket may take it before the worker does."""
        buffers = self._wire.encode_step(scheduler_output)
        for channel in self._channels:
            self._send(channel, STEP, *buffers)
        self._under_way.append((scheduler_output, buffers))
        self._num_sent += 1

    def wait(self) -> None:
        """Block until the oldest step's bytes are here."""
        self._outputs.append(self._receive(self._channels[0]))
        self._under_way.popleft()

    def handoff(self) -> ModelRunnerOutput:
        """Decode the oldest step's bytes."""
        return self._wire.decode_tokens(self._outputs.pop())

    def rpc(self, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        """Call in each worker process, whose ValueErrors are raised here.

        Raises RuntimeError while a step is under way.
        """
        if self._under_way:
            raise RuntimeError("rpc while a step is under way")
        message = RPC + pickle.dumps((function, args))
        for channel in self._channels:
            self._send(channel, message)
        return [pickle.loads(self._receive(channel)) for channel in self._channels]

    def shutdown(self) -> None:
        """Close the sockets, which ends the workers' loops; kill what takes longer than 5 s."""
        for channel in self._channels:
            channel.close()
        for process in self._processes:
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _send(self, channel: Channel, *buffers: Buffer) -> None:
        try:
            channel.send(*buffers)
        except ChannelClosedError:
            raise self._death(channel) from None

    def _receive(self, channel: Channel) -> memoryview:
        while (message := self._next(channel))[:1] == LOST:
            self._restore(channel, int(message[1:]))
        if message[:1] == ERROR:
            raise self._failure(message)
        if message[:1] == REFUSED:
            raise ValueError(message[1:].decode())
        return memoryview(message)[1:]

    def _next(self, channel: Channel) -> bytes:
        if len(self._channels) > 1:
            self._watch_all_until(channel)
        try:
            return channel.recv()
        except ChannelClosedError:
            raise self._death(channel) from None

    def _restore(self, channel: Channel, num_read: int) -> None:
        """Send a rank again what came after its last step, the first of it whole.

        All of that is under way: no rank gets through a step without the others.
        """
        (first, _), *others = list(self._under_way)[num_read - self._num_sent :]
        self._send(channel, STEP, *self._wire.encode_whole(first, len(others)))
        for _, buffers in others:
            self._send(channel, STEP, *buffers)

    def _watch_all_until(self, awaited: Channel) -> None:
        """A rank that ends leaves the others waiting for it in a collective, for ever."""
        while not awaited.has_message:
            readable, _, _ = select.select(self._channels, [], [])
            for channel in readable:
                try:
                    channel.receive()
                except ChannelClosedError:
                    raise self._death(channel) from None
                if channel.has_message and channel.peek(1) == ERROR:
                    raise self._failure(channel.recv())
                if channel is not awaited and channel.has_message and channel.peek(1) == LOST:
                    self._restore(channel, int(channel.recv()[1:]))

    def _failure(self, message: bytes) -> EngineDeadError:
        """What to raise for an error that a rank reports."""
        if killed := self._killed():
            return self._death(killed)
        return EngineDeadError(f"the worker process failed: {message[1:].decode()}")

    def _killed(self) -> Channel | None:
        """Of the rank that was killed, if one was: what became of the others comes of that."""
        pairs = zip(self._processes, self._channels, strict=True)
        return next((channel for process, channel in pairs if (process.poll() or 0) < 0), None)

    def _death(self, channel: Channel) -> EngineDeadError:
        process = self._processes[self._channels.index(self._killed() or channel)]
        code = process.wait()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return EngineDeadError(f"the worker process (pid {process.pid}) {how}")
