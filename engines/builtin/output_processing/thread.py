"""Output processing by a second thread of the engine's process: the same GIL, the same heap."""

import sys
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any
from weakref import finalize

from engines.builtin.delivery.choice import load_delivery
from engines.builtin.delivery.stage import Processed, StepTokens
from engines.builtin.output_processing.late import LateProcessor, Pending
from engines.builtin.request_table import Request
from engines.protocol import EngineConfig, Setting

MOST_PENDING = 4
"""Steps. Who is further behind makes the scheduler wait."""
SWITCH_INTERVAL_SECONDS = 0.0005
"""The interpreter's own is 5 ms, longer than a step of a small model."""

_Answer = Processed | Exception
_Call = tuple[Callable[[Any], Processed | None], Any]


class Threaded:
    """The scheduler goes on before the stop strings of a step are known."""

    is_exact = False
    num_under_way = 1

    def __init__(self, config: EngineConfig) -> None:
        self._processor = LateProcessor(load_delivery(config).stages(config))
        self._pending = Pending()
        self._inbox: SimpleQueue[_Call | None] = SimpleQueue()
        self._outbox: SimpleQueue[_Answer] = SimpleQueue()
        arguments = self._inbox, self._outbox
        self._thread = threading.Thread(target=_run, args=arguments, daemon=True)
        self._thread.start()
        # Also where the engine is forgotten: a thread of its own would keep it alive.
        self._end = finalize(self, _end, self._inbox, self._thread, sys.getswitchinterval())
        sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)

    @property
    def num_pending(self) -> int:
        """Steps that have not come back."""
        return len(self._pending)

    def add(self, request: Request) -> None:
        """In its turn."""
        self._pending.add(request)
        self._inbox.put((self._processor.add, request))

    def remove(self, slot: int) -> None:
        """In its turn."""
        self._pending.remove(slot)
        self._inbox.put((self._processor.remove, slot))

    def process(self, step: StepTokens) -> Sequence[Processed]:
        """Those that are ready. With `MOST_PENDING` others waits for the oldest."""
        self._pending.append(step)
        self._inbox.put((self._processor.process, step))
        if len(self._pending) > MOST_PENDING:
            return self.wait()
        return self._ready()

    def wait(self) -> Sequence[Processed]:
        """Those that are ready, once the oldest is."""
        if not len(self._pending):
            return ()
        return [self._returned(self._outbox.get()), *self._ready()]

    def _ready(self) -> Sequence[Processed]:
        if self._outbox.empty():
            return ()
        ready = []
        while not self._outbox.empty():
            ready.append(self._returned(self._outbox.get()))
        return ready

    def _returned(self, answer: _Answer) -> Processed:
        if isinstance(answer, Exception):
            raise answer
        return self._pending.returned(answer)

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


def _end(
    inbox: "SimpleQueue[_Call | None]", thread: threading.Thread, switch_interval: float
) -> None:
    inbox.put(None)
    thread.join()
    sys.setswitchinterval(switch_interval)
