"""The runner in processes of its own, one a rank, behind a wire: the runner's end."""

import os
import pickle
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress

from engines.builtin.registries import OUTPUT_PROCESSING
from engines.builtin.wire import LostStateError, Wire
from engines.builtin.wire.choice import load_transport, load_wire
from engines.builtin.worker.channel import ByteChannel, ChannelClosedError
from engines.builtin.worker.device_waiter import DeviceWaiter
from engines.builtin.worker.join import ranks_of
from engines.builtin.worker.messages import ERROR, LOST, REFUSED, RESTORED, RPC, STEP, Setup
from engines.builtin.worker.runner import LaunchedStep, ModelRunner


class WorkerProcess:
    """The loop of a rank's process."""

    role = "worker"

    def __init__(self, channel: ByteChannel) -> None:
        self.while_device_busy: Callable[[], object] | None = None
        self._channel = channel
        setup: Setup = pickle.loads(channel.recv()[1:])
        self.config = setup.plan.config
        self.answers = setup.rank == 0
        self.runner = ModelRunner(self.config, ranks_of(setup.plan, setup.rank))
        self.wire: Wire = load_wire(self.config)(self.config)
        self._decode_ns = self._encode_ns = 0
        self._is_lost = False
        self._num_steps = self._num_taken = self._num_made_good = 0
        self._waiter: DeviceWaiter | None = None
        if OUTPUT_PROCESSING.load(self.config.output_processing).num_under_way:
            self._waiter = DeviceWaiter(self.runner)
        channel.send(RPC)
        rank_end = load_transport(self.config).rank_end
        self._transport = rank_end(setup.plan, setup.place, setup.descriptors, channel)

    def wire_ns(self) -> tuple[int, int, int]:
        """Spent so far on decoding steps, on encoding tokens and, of CPU time, on spinning."""
        return self._decode_ns, self._encode_ns, self._transport.broadcasts.spun_ns

    def run(self) -> None:
        """Serve steps and calls until the other end closes."""
        while True:
            message = memoryview(self._next())
            kind, data = message[:1], message[1:]
            if kind == STEP:
                self._broadcast_step(data)
            elif kind == RESTORED:
                self._make_good(int(bytes(data)))
            elif kind == RPC:
                self._call(data)

    def _next(self) -> bytes:
        """The next broadcast; of a rank that has lost its state, what it is sent alone."""
        if self._is_lost:
            return self._channel.recv()
        broadcasts = self._transport.broadcasts
        while (message := broadcasts.take()) is None:
            if not broadcasts.spin(self._has_tokens) and broadcasts.park():
                self._hear()
        return message

    def _has_tokens(self) -> bool:
        return self._waiter is not None and self._waiter.has_done

    def _hear(self) -> None:
        """The next step goes to the device before the tokens of the last come from it."""
        ends: list[ByteChannel | DeviceWaiter] = [self._channel]
        if self._waiter is not None:
            ends.append(self._waiter)
        readable, _, _ = select.select(ends, [], [])
        if self._channel in readable:
            self._channel.receive()
        elif self._waiter is not None:
            self._hand_over(*self._waiter.take())

    def _broadcast_step(self, data: memoryview) -> None:
        """Unless it has come alone already, or will."""
        self._num_taken += 1
        if self._num_taken > self._num_made_good and not self._is_lost:
            self._step(data)

    def _make_good(self, up_to: int) -> None:
        self._is_lost, self._num_made_good = False, up_to
        for _ in range(up_to - self._num_steps):
            message = self._channel.recv()
            if not self._is_lost:  # once more
                self._step(memoryview(message)[1:])

    def _step(self, data: memoryview) -> None:
        began = time.perf_counter_ns()
        try:
            scheduled = self.wire.decode_step(data)
        except LostStateError:
            self._is_lost = True
            self._channel.send(LOST, str(self._num_steps).encode())
            return
        self._decode_ns += time.perf_counter_ns() - began
        self._num_steps += 1
        # A rank that nobody waits for may fall behind the one that answers: a step's memory and
        # events are those of the step before the last.
        while self._waiter is not None and self._waiter.num_under_way > 1:
            self._hand_over(*self._waiter.take())
        step = self.runner.launch(scheduled)
        if self.while_device_busy is not None:
            self.while_device_busy()
        if self._waiter is not None:
            self._waiter.add(step)
        else:
            self._hand_over(step, self.runner.wait(step))

    def _hand_over(self, step: LaunchedStep, waited: tuple[int, int]) -> None:
        if not self.answers:
            return
        output = self.runner.handoff(step, waited)
        began = time.perf_counter_ns()
        buffers = self.wire.encode_tokens(output)
        self._encode_ns += time.perf_counter_ns() - began
        self._transport.answer(STEP, *buffers)

    def _call(self, data: memoryview) -> None:
        function, args = pickle.loads(data)
        try:
            answer = RPC + pickle.dumps(function(self, *args))
        except ValueError as error:
            answer = REFUSED + str(error).encode()
        self._channel.send(answer)


def main(descriptor: int) -> None:
    """Serve steps until the other end closes, as it does where the scheduler's process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    channel = ByteChannel(socket.socket(fileno=descriptor))
    try:
        try:
            process = WorkerProcess(channel)
        except ValueError as error:
            channel.send(REFUSED + str(error).encode())
            return
        process.run()
    except ChannelClosedError:
        return
    except Exception:
        last = traceback.format_exc().strip().splitlines()[-1]
        with suppress(ChannelClosedError):
            channel.send(ERROR + last.encode())


if __name__ == "__main__":
    main(int(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # torch's teardown takes longer than the step did
