"""The runner in processes of its own, one a rank, behind a wire: the runner's end."""

import os
import pickle
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress

from engines.builtin.device.choice import device_class
from engines.builtin.model import Parallel
from engines.builtin.registries import OUTPUT_PROCESSING, WIRES
from engines.builtin.wire import LostStateError, Wire
from engines.builtin.worker.channel import Channel, ChannelClosedError
from engines.builtin.worker.device_waiter import DeviceWaiter
from engines.builtin.worker.messages import ERROR, LOST, REFUSED, RPC, STEP, Setup
from engines.builtin.worker.runner import LaunchedStep, Runner
from engines.die_with_parent import die_with_parent


class WorkerProcess:
    """The loop of a rank's process."""

    role = "worker"

    def __init__(self, channel: Channel) -> None:
        self.while_device_busy: Callable[[], object] | None = None
        self._channel = channel
        setup: Setup = pickle.loads(channel.recv()[1:])
        self.config = setup.config
        self._answers = setup.rank == 0
        self.runner = Runner(self.config, _join(setup))
        self.wire: Wire = WIRES.load(self.config.wire)(self.config)
        self._is_lost = False
        self._num_steps = 0
        self._waiter: DeviceWaiter | None = None
        if OUTPUT_PROCESSING.load(self.config.output_processing).num_under_way:
            self._waiter = DeviceWaiter(self.runner)
        channel.send(RPC)

    def run(self) -> None:
        """Serve steps and calls until the other end closes."""
        while True:
            if self._waiter is not None:
                self._hand_over_until_message(self._waiter)
            message = memoryview(self._channel.recv())
            if message[:1] == STEP:
                self._step(message[1:])
            else:
                self._call(message[1:])

    def _step(self, data: memoryview) -> None:
        try:
            scheduled = self.wire.decode_step(data)
        except LostStateError:
            if not self._is_lost:
                self._is_lost = True
                self._channel.send(LOST, str(self._num_steps).encode())
            return
        self._is_lost = False
        self._num_steps += 1
        step = self.runner.launch(scheduled)
        if self.while_device_busy is not None:
            self.while_device_busy()
        if self._waiter is not None:
            self._waiter.add(step)
        else:
            self._hand_over(step, self.runner.wait(step))

    def _hand_over_until_message(self, waiter: DeviceWaiter) -> None:
        """The next step goes to the device before the tokens of the last come from it."""
        ends: list[Channel | DeviceWaiter] = [self._channel, waiter]
        while not self._channel.has_message:
            readable, _, _ = select.select(ends, [], [])
            if self._channel in readable:
                self._channel.receive()
            else:
                self._hand_over(*waiter.take())

    def _hand_over(self, step: LaunchedStep, waited: tuple[int, int]) -> None:
        if self._answers:
            self._channel.send(STEP, *self.wire.encode_tokens(self.runner.handoff(step, waited)))

    def _call(self, data: memoryview) -> None:
        function, args = pickle.loads(data)
        try:
            answer = RPC + pickle.dumps(function(self, *args))
        except ValueError as error:
            answer = REFUSED + str(error).encode()
        self._channel.send(answer)


def _join(setup: Setup) -> Parallel:
    """The ranks of the device, found by way of a file, or this one alone."""
    from engines.builtin.model.parallel import ONE_RANK, DistributedRanks

    size = setup.config.tensor_parallel_size
    backend = device_class(setup.config).backend
    if size == 1 or not backend:
        return ONE_RANK
    import torch.distributed as dist

    dist.init_process_group(
        backend, init_method=f"file://{setup.rendezvous}", rank=setup.rank, world_size=size
    )
    return DistributedRanks()


def main(descriptor: int) -> None:
    """Serve steps until the other end closes; die with the process that started this one."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    channel = Channel(socket.socket(fileno=descriptor))
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
