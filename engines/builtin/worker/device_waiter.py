"""A thread that waits for the device, so that its process can take the next step meanwhile."""

import socket
import threading
from collections import deque
from queue import SimpleQueue
from typing import NamedTuple

from engines.builtin.worker.runner import LaunchedStep, ModelRunner


class Waited(NamedTuple):
    """A step that is done: what `ModelRunner.wait` answered or raised."""

    step: LaunchedStep
    answer: tuple[int, int] | Exception


class DeviceWaiter:
    """Waits for steps in their order; readable, as `select` has it, when one of them is done.

    The thread does nothing else: what follows a step is done by the process's own thread, so that
    no two of them want the GIL.
    """

    def __init__(self, runner: ModelRunner) -> None:
        self._runner = runner
        self._done_here, self._done_there = socket.socketpair()
        self._steps: SimpleQueue[LaunchedStep] = SimpleQueue()
        self._done: deque[Waited] = deque()
        self.num_under_way = 0
        threading.Thread(target=self._run, daemon=True).start()

    def fileno(self) -> int:
        """The descriptor to select on."""
        return self._done_here.fileno()

    @property
    def has_done(self) -> bool:
        """Whether `take` need not wait."""
        return bool(self._done)

    def add(self, step: LaunchedStep) -> None:
        """Wait for one more; ``num_under_way`` counts those that nobody has taken."""
        self.num_under_way += 1
        self._steps.put(step)

    def take(self) -> tuple[LaunchedStep, tuple[int, int]]:
        """The oldest step, once it is done, and what `ModelRunner.wait` answered, or raises."""
        self._done_here.recv(1)
        self.num_under_way -= 1
        step, answer = self._done.popleft()
        if isinstance(answer, Exception):
            raise answer
        return step, answer

    def _run(self) -> None:
        while True:
            step = self._steps.get()
            answer: tuple[int, int] | Exception
            try:
                answer = self._runner.wait(step)
            except Exception as error:
                answer = error
            self._done.append(Waited(step, answer))
            self._done_there.send(b"\0")
