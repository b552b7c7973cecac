"""SGLang's threads, done without: above all the one that up to 0.5.3 forwards overlapped steps.

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


_THREADS = (
    ("managers.tp_worker_overlap_thread", "TpModelWorkerClient", "forward_thread_func"),
    # Watchdogs: they look for a step that hangs, and nothing of a process with threads is told.
    ("managers.scheduler", "Scheduler", "watchdog_thread"),
    ("utils.watchdog", "WatchdogRaw", "_watchdog_thread"),
)
"""What SGLang's threads run, by module, class and method; each release has some of them."""


def keep_from_starting() -> None:
    """Have the threads of a release end as soon as they start."""
    for module, kind, method in _THREADS:
        with suppress(ModuleNotFoundError):
            found = getattr(import_module(f"sglang.srt.{module}"), kind, None)
            if hasattr(found, method):
                setattr(found, method, lambda _: None)


def stand_in(worker: Any) -> None:
    """Stand in for the thread of a worker that has one."""
    if (thread := getattr(worker, "forward_thread", None)) is not None:
        thread.join()
        worker.input_queue = _AtOnce(worker)
