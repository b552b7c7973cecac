"""Waiting for a moment of `time.perf_counter_ns`, to the microsecond, without the GIL or with."""

import ctypes
import select
import sys
import time

_SPIN_NS = 150_000
LET_OTHERS_RUN = select.poll()
"""Polling nothing lets go of the GIL in a third of a microsecond; `time.sleep(0)` takes ten and
more on some virtual machines."""
_PR_SET_TIMERSLACK = 29


def tighten_timer() -> None:
    """Ask Linux to end this thread's sleeps on time: the default slack is 50 µs."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)


def hold_until(deadline_ns: int) -> None:
    """Be busy until that moment and keep the GIL, but for what the interpreter makes a thread give
    to others that want it.
    """
    while time.perf_counter_ns() < deadline_ns:
        pass


def wait_until(deadline_ns: int) -> int:
    """Wait for that moment; the time it is then.

    Sleeps, then yields in a spin for the last stretch: a sleep alone overshoots.
    """
    while (left := deadline_ns - time.perf_counter_ns()) > _SPIN_NS:
        time.sleep((left - _SPIN_NS) / 1e9)
    while (now := time.perf_counter_ns()) < deadline_ns:
        LET_OTHERS_RUN.poll(0)
    return now
