"""A moment of `time.perf_counter_ns` at which an event loop calls back, to some 50 microseconds.

uvloop's own timers count whole milliseconds. Linux's timerfd is a descriptor that becomes readable
at an absolute moment of CLOCK_MONOTONIC, the clock of `perf_counter_ns` there.
"""

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter_ns

_CLOCK_MONOTONIC = 1
_TFD_TIMER_ABSTIME = 1


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class _LinuxTimer:
    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
        self._loop, self._callback = loop, callback
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._setting = _Itimerspec()
        self._reference = ctypes.byref(self._setting)
        flags = os.O_NONBLOCK | os.O_CLOEXEC
        self._descriptor = self._libc.timerfd_create(_CLOCK_MONOTONIC, flags)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        loop.add_reader(self._descriptor, self._fired)

    def set(self, moment_ns: int) -> None:
        """Call back then, once, and at no other moment; a past one is now."""
        value = self._setting.value
        value.seconds, value.nanoseconds = divmod(max(1, moment_ns), 1_000_000_000)
        self._libc.timerfd_settime(self._descriptor, _TFD_TIMER_ABSTIME, self._reference, None)

    def close(self) -> None:
        """Call back no more."""
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _fired(self) -> None:
        with suppress(BlockingIOError):  # it was set again meanwhile
            os.read(self._descriptor, 8)
            self._callback()


class _LoopTimer:
    """Where there is no timerfd: the loop's own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
        self._loop, self._callback = loop, callback
        self._handle: asyncio.TimerHandle | None = None

    def set(self, moment_ns: int) -> None:
        """As the other."""
        self.close()
        left = (moment_ns - perf_counter_ns()) / 1e9
        self._handle = self._loop.call_at(self._loop.time() + left, self._callback)

    def close(self) -> None:
        """As the other."""
        if self._handle is not None:
            self._handle.cancel()


Timer = _LinuxTimer if sys.platform == "linux" else _LoopTimer
"""``Timer(loop, callback)``, then ``set(moment_ns)``; ``close()`` at the end."""
