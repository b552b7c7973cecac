"""How a client process fares while it measures: its core, its loop, its collector."""

import asyncio
import resource
import time
from array import array
from contextlib import suppress
from pathlib import Path

import numpy as np

from harness.collector import window
from harness.load.task import ClientHealth
from harness.load.timer import Timer
from harness.trial.run_queue import RunQueue

_TICK_NS = 10_000_000
_MOST_TICKS = 1 << 17
"""22 minutes; after that the oldest are written over."""
ROLE = "client"


class HealthWatch:
    """From `begin` to `end`; the collector's window is open meanwhile. In one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, policy: str) -> None:
        self._policy = policy
        self._late_ns = array("q", bytes(8 * _MOST_TICKS))
        self._num_ticks = 0
        self._due_ns = 0
        self._timer = Timer(loop, self._tick)
        self._run_queue = RunQueue()

    def open_window(self) -> None:
        """Set the collector. Raises ValueError where it is then not as asked."""
        if refusal := window.open_window(ROLE, self._policy, 0, True, None):
            raise ValueError(refusal)

    def begin(self, start_ns: int) -> None:
        """Count from about now on; ticks are due from ``start_ns``."""
        self._run_queue.__enter__()
        self._waited_ns = self._run_queue.waited_ns()
        self._stolen = _stolen_and_all()
        self._usage = resource.getrusage(resource.RUSAGE_SELF)
        self._began_ns = time.perf_counter_ns()
        self._cpu_ns = time.process_time_ns()
        self._due_ns = start_ns
        self._timer.set(start_ns)

    def end(self, process: int, num_requests: int, num_pieces: int, num_bytes: int) -> ClientHealth:
        """What it was like."""
        cpu_ns = time.process_time_ns() - self._cpu_ns
        wall_ns = max(1, time.perf_counter_ns() - self._began_ns)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        stolen, of_all = (
            now - before for now, before in zip(_stolen_and_all(), self._stolen, strict=True)
        )
        waited_ns = self._run_queue.waited_ns() - self._waited_ns
        tells = self._run_queue.tells
        self._run_queue.__exit__()
        self._timer.close()
        late = np.array(self._late_ns[: min(self._num_ticks, _MOST_TICKS)] or [0]) / 1e9
        p90, p95, p99, p999 = np.percentile(late, [90, 95, 99, 99.9]).tolist()
        return ClientHealth(
            process=process,
            num_requests=num_requests,
            seconds=wall_ns / 1e9,
            cpu_share=cpu_ns / wall_ns,
            waited_share=waited_ns / wall_ns if tells else None,
            stolen_share=stolen / max(1, of_all),
            voluntary_switches=usage.ru_nvcsw - self._usage.ru_nvcsw,
            involuntary_switches=usage.ru_nivcsw - self._usage.ru_nivcsw,
            num_ticks=self._num_ticks,
            lag_p90=p90,
            lag_p95=p95,
            lag_p99=p99,
            lag_p999=p999,
            lag_max=float(late.max()),
            num_pieces=num_pieces,
            num_bytes=num_bytes,
            collector=window.close_window(ROLE),
        )

    def _tick(self) -> None:
        """Each tick that was due by now is late, those that were slept through too."""
        now = time.perf_counter_ns()
        while self._due_ns <= now:
            self._late_ns[self._num_ticks % _MOST_TICKS] = now - self._due_ns
            self._num_ticks += 1
            self._due_ns += _TICK_NS
        self._timer.set(self._due_ns)


def _stolen_and_all() -> tuple[int, int]:
    """Ticks of all cores so far that other guests of the host took, and all ticks (proc(5))."""
    with suppress(OSError, ValueError, IndexError):
        with Path("/proc/stat").open("rb") as file:
            figures = [int(each) for each in file.readline().split()[1:9]]
        return figures[7], sum(figures)
    return 0, 0
