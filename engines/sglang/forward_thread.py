"""The thread that up to 0.5.3 runs the forward pass of an overlapped step, done without it.

What it does is counted where it is done, and nobody has to ask when: a step is forwarded as soon
as it is put into the thread's queue.
"""

from collections import deque
from contextlib import suppress
from importlib import import_module
from typing import Any

from engines.sglang.loop import pausing


class _AtOnce:
    """In the place of the thread's queue."""

    def __init__(self, client: Any) -> None:
        self._put: deque[Any] = deque()
        self._turns = pausing(type(client).forward_thread_func_)(client)
        next(self._turns)

    def put(self, item: Any) -> None:
        """Run the thread's next turn, which asks for it."""
        self._put.append(item)
        next(self._turns)

    def get(self) -> Any:
        """What was put."""
        return self._put.popleft()


def keep_from_starting() -> None:
    """Have the thread of a release that has one end as soon as it starts."""
    with suppress(ModuleNotFoundError):
        client = import_module("sglang.srt.managers.tp_worker_overlap_thread").TpModelWorkerClient
        client.forward_thread_func = lambda _: None


def stand_in(worker: Any) -> None:
    """Stand in for the thread of a worker that has one."""
    if (thread := getattr(worker, "forward_thread", None)) is not None:
        thread.join()
        worker.input_queue = _AtOnce(worker)
