"""Processes of their own, one a rank, that all get the same: the scheduler's end."""

import pickle
import select
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from engines import tied_process
from engines.builtin.transport import SchedulerEnd, TransportPlan
from engines.builtin.wire import Buffer, Stateless, TellsFields, Wire
from engines.builtin.wire.choice import load_transport, load_wire
from engines.builtin.worker import SchedulerOutput, device_calls
from engines.builtin.worker.channel import ByteChannel, ChannelClosedError
from engines.builtin.worker.messages import BELL, ERROR, LOST, REFUSED, RESTORED, RPC, STEP, Setup
from engines.pickle_fields import PICKLE_REST
from engines.private_folder import private_folder
from engines.process_faults import has_ended, refuse_stopped
from engines.protocol import EngineConfig, EngineDeadError

_LOOP = "engines.builtin.worker.process_loop"

_LOOK_SECONDS = 0.2
"""How often the ranks are looked at while one of them is waited for: a stopped one says nothing."""

_MOST_KEPT = 256
"""Steps that are kept for a rank that has lost its state: one without collectives may be behind
the first, but by no more than the ways to it can hold.
"""


class Ranks:
    """Those of ``numbers``; the first of them answers.

    Raises EngineDeadError from any call once a process is gone.
    """

    def __init__(self, config: EngineConfig, numbers: range) -> None:
        self.on_message: Callable[[str, bytes], object] | None = None
        self._encode_ns = 0
        self.wire: Wire = load_wire(config)(config)
        self._numbers = numbers
        self._processes: list[subprocess.Popen[bytes]] = []
        self._channels: list[ByteChannel] = []
        most_kept = 0 if isinstance(self.wire, Stateless) else _MOST_KEPT
        self._kept: deque[tuple[SchedulerOutput, Sequence[Buffer]]] = deque(maxlen=most_kept)
        self._num_sent = 0
        self.plan = TransportPlan(config, len(numbers), private_folder("ranks"))
        with ExitStack() as undo:
            undo.callback(shutil.rmtree, self.plan.folder)
            self._transport: SchedulerEnd = load_transport(config)(self.plan, self._channels)
            undo.pop_all()

    def start(self) -> None:
        """Start the processes, which then look for one another."""
        inherited = self._transport.descriptors
        for index, number in enumerate(self._numbers):
            here, there = ByteChannel.pair()
            command = [sys.executable, "-P", "-m", _LOOP, str(there.fileno())]
            passed = (there.fileno(), *inherited)
            self._processes.append(tied_process.start_tied(command, pass_fds=passed))
            there.close()
            here.while_blocked = self._look
            self._channels.append(here)
            self._send(here, RPC + pickle.dumps(Setup(self.plan, index, number, inherited)))

    def meet(self) -> None:
        """Wait until all are ready. Raises ValueError for one that cannot be."""
        for channel in self._channels:
            self._answer(channel)
        self._transport.meet()

    @property
    def num_bytes(self) -> int:
        """Bytes both ways, headers included."""
        return self._transport.num_bytes + sum(channel.num_bytes for channel in self._channels)

    def wire_seconds(self, decode_ns: int) -> dict[str, float]:
        """On encoding and decoding here, where that took ``decode_ns``, and in all ranks together;
        ``spin``: CPU time of all processes, spent looking for what had not come yet.
        """
        each: list[tuple[int, int, int]] = self.rpc(device_calls.wire_ns, ())
        decoded, encoded, spun = map(sum, zip(*each, strict=True))
        spun += self._transport.answers.spun_ns
        return {
            "encode": self._encode_ns / 1e9,
            "decode": decode_ns / 1e9,
            "rank_encode": encoded / 1e9,
            "rank_decode": decoded / 1e9,
            "spin": spun / 1e9,
        }

    def send_step(self, step: SchedulerOutput) -> None:
        """Encode it once for all of them; it may be there before a rank gets to it."""
        began = time.perf_counter_ns()
        buffers = self.wire.encode_step(step)
        self._encode_ns += time.perf_counter_ns() - began
        if self.on_message is not None:
            self.on_message("scheduler_output", b"".join(buffers))
        self._broadcast(STEP, *buffers)
        self._kept.append((step, buffers))
        self._num_sent += 1

    def receive_tokens(self) -> memoryview:
        """Wait for what the first rank answers to the oldest step."""
        answers = self._transport.answers
        while (message := answers.take()) is None:
            if not answers.spin(_never) and answers.park():
                self.hear(_LOOK_SECONDS)
        tokens = memoryview(message)[1:]
        if self.on_message is not None:
            self.on_message("model_runner_output", bytes(tokens))
        return tokens

    def message_fields(self, direction: str, message: bytes) -> dict[str, int]:
        """As the wire says, of what `on_message` was given; all is the rest where it does not."""
        wire = self.wire
        if not isinstance(wire, TellsFields):
            return {PICKLE_REST: len(message)}
        tell = wire.step_fields if direction == "scheduler_output" else wire.tokens_fields
        return tell(message)

    def rpc(self, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        """Call in each of them, behind all that was sent; their ValueErrors are raised here."""
        self._broadcast(RPC, pickle.dumps((function, args)))
        return [pickle.loads(self._answer(channel)) for channel in self._channels]

    def hear(self, seconds: float = 0.0) -> None:
        """Take in what comes within ``seconds``, and do what the ranks ask for."""
        if self._heed():
            return
        readable, _, _ = select.select(self._channels, [], [], seconds)
        for channel in readable:
            try:
                channel.receive()
            except ChannelClosedError:
                raise self._death() from None
        self._heed()
        if seconds and not readable:
            self._look()

    def shutdown(self) -> None:
        """Close the sockets, which ends the ranks' loops; kill what takes longer than 5 s."""
        self._transport.close()
        for channel in self._channels:
            channel.close()
        for process in self._processes:
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.plan.folder, ignore_errors=True)

    def _broadcast(self, *buffers: Buffer) -> None:
        try:
            self._transport.broadcast(self.hear, *buffers)
        except ChannelClosedError:
            raise self._death() from None

    def _send(self, channel: ByteChannel, *buffers: Buffer) -> None:
        try:
            channel.send(*buffers)
        except ChannelClosedError:
            raise self._death() from None

    def _answer(self, channel: ByteChannel) -> memoryview:
        """To a call."""
        while not (channel.has_message and channel.peek(1) in (RPC, REFUSED)):
            self.hear(_LOOK_SECONDS)
        message = channel.recv()
        if message[:1] == REFUSED:
            raise ValueError(message[1:].decode())
        return memoryview(message)[1:]

    def _heed(self) -> bool:
        """Do what the next message of a rank asks for; whether one of them asked for anything."""
        has_heeded = False
        for channel in self._channels:
            while channel.has_message and (kind := channel.peek(1)) in (BELL, LOST, ERROR):
                has_heeded = True
                message = channel.recv()
                if kind == ERROR:
                    raise self._failure(message)
                if kind == LOST:
                    self._restore(channel, int(message[1:]))
        return has_heeded

    def _restore(self, channel: ByteChannel, num_read: int) -> None:
        """Send a rank again what came after its last step, the first of it whole."""
        num_missing = self._num_sent - num_read
        if num_missing > len(self._kept):
            raise EngineDeadError(
                f"a worker process has lost its state {num_missing} steps ago, and only the last "
                f"{len(self._kept)} can be sent again"
            )
        (first, _), *others = list(self._kept)[-num_missing:]
        self._send(channel, RESTORED, str(self._num_sent).encode())
        self._send(channel, STEP, *self.wire.encode_whole(first, len(others)))
        for _, buffers in others:
            self._send(channel, STEP, *buffers)

    def _failure(self, message: bytes) -> EngineDeadError:
        """What to raise for an error that a rank reports."""
        if any((each.poll() or 0) < 0 for each in self._processes):
            return self._death()
        return EngineDeadError(f"the worker process failed: {message[1:].decode()}")

    def _death(self) -> EngineDeadError:
        """What to raise where the way to a rank has ended, which comes before its process has.

        Of several the one that was killed: what became of the others comes of that.
        """
        while not (ended := [each for each in self._processes if each.poll() is not None]):
            with suppress(subprocess.TimeoutExpired):
                self._processes[0].wait(0.01)
        process = min(ended, key=lambda each: each.returncode)
        return has_ended("worker", process.pid, process.returncode)

    def _look(self) -> None:
        """Raise EngineDeadError where one of them is stopped: it says nothing of that."""
        for process in self._processes:
            refuse_stopped("worker", process.pid)


def _never() -> bool:
    return False
