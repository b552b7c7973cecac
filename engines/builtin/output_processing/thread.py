"""Output processing by a second thread of the engine's process: the same GIL, the same heap."""

import sys
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any
from weakref import finalize

from engines.builtin.delivery.choice import load_delivery
from engines.builtin.delivery.stage import Processed, StepTokens
from engines.builtin.output_processing.late import Beside, LateProcessor
from engines.builtin.request_table import Request
from engines.protocol import EngineConfig, Setting

SWITCH_INTERVAL_SECONDS = 0.0005
"""The interpreter's own is 5 ms, longer than a step of a small model."""

_Answer = Processed | Exception
_Call = tuple[Callable[[Any], Processed | None], Any]


class Threaded(Beside):
    """The scheduler goes on before the stop strings of a step are known."""

    makes_objects_here = True
    wire_bytes = 0

    def __init__(self, config: EngineConfig) -> None:
        super().__init__()
        self._processor = LateProcessor(load_delivery(config).stages(config))
        self._inbox: SimpleQueue[_Call | None] = SimpleQueue()
        self._outbox: SimpleQueue[_Answer] = SimpleQueue()
        arguments = self._inbox, self._outbox
        self._thread = threading.Thread(target=_run, args=arguments, daemon=True)
        self._thread.start()
        # Also where the engine is forgotten: a thread of its own would keep it alive.
        self._end = finalize(self, _end, self._inbox, self._thread)
        _SWITCH_INTERVAL.shorten()

    def add(self, request: Request) -> None:
        """In its turn."""
        self._pending.add(request)
        self._inbox.put((self._processor.add, request))

    def remove(self, slot: int) -> None:
        """In its turn."""
        self._pending.remove(slot)
        self._inbox.put((self._processor.remove, slot))

    def give(self, step: StepTokens) -> None:
        """In its turn."""
        self._inbox.put((self._processor.process, step))

    def take(self, *, wait: bool) -> Processed | None:
        """The oldest that is done. Raises what the thread raised."""
        try:
            answer = self._outbox.get(block=wait)
        except Empty:
            return None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def settings(self) -> dict[str, Setting]:
        """The switch interval in microseconds, as it is now."""
        return {"switch_interval_us": round(1e6 * sys.getswitchinterval())}

    def rpc(self, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        """Nothing, the process is the engine's; but all that it was given is done."""
        done = threading.Event()
        self._inbox.put((lambda _: done.set(), None))
        while not done.wait(1) and self._thread.is_alive():
            pass
        return []

    def shutdown(self) -> None:
        """End the thread; the switch interval is what it was."""
        self._end()


def _run(inbox: "SimpleQueue[_Call | None]", outbox: "SimpleQueue[_Answer]") -> None:
    while (call := inbox.get()) is not None:
        function, argument = call
        try:
            answer = function(argument)
        except Exception as error:
            outbox.put(error)
            return
        if answer is not None:
            outbox.put(answer)


def _end(inbox: "SimpleQueue[_Call | None]", thread: threading.Thread) -> None:
    inbox.put(None)
    thread.join()
    _SWITCH_INTERVAL.put_back()


class _SwitchInterval:
    """The interpreter's: short as long as an engine has a thread, then what it was before them."""

    def __init__(self) -> None:
        self._num_engines, self._before = 0, 0.0

    def shorten(self) -> None:
        """One engine more."""
        if not self._num_engines:
            self._before = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
        self._num_engines += 1

    def put_back(self) -> None:
        """One less."""
        self._num_engines -= 1
        if not self._num_engines:
            sys.setswitchinterval(self._before)


_SWITCH_INTERVAL = _SwitchInterval()
