"""Processes that tests start: how they are to begin, and whether they have ended.

A test waits for an event, and gives up when only a hang lasts so long: `HANG_SECONDS`. Where
something is to overstep a limit, `overstepped` finds one that nothing else does.
"""

import ctypes
import gc
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import psutil

from harness.machine.interrupts import INTERRUPTS

_SHARED_MEMORY = Path("/dev/shm")
_NEW_MOUNTS = 0x00020000
"""`CLONE_NEWNS`."""

HANG_SECONDS = 600
"""For what must come, on however slow a machine: only what hangs takes so long."""

_LIMITS = (1.5, 15.0, 150.0)

Found = TypeVar("Found")


def is_alive(process: psutil.Process) -> bool:
    """Not so one that has ended and that nobody has asked for its status yet."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def has_ended(pid: int, within_seconds: float = HANG_SECONDS) -> bool:
    """Whether a process, of whomever, has ended or does so in time."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            return bool(select.select([descriptor], [], [], within_seconds)[0])
        finally:
            os.close(descriptor)
    return True


def children() -> set[psutil.Process]:
    """Of this process, in which tests of other files may have started some that stay."""
    return set(psutil.Process().children())


def descriptors() -> set[tuple[str, str]]:
    """What this process has open: each one's number, and what it leads to.

    No count: the collector may close what other tests have left at any moment.
    """
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one of this very folder
            found.add((path.name, str(path.readlink())))
    return found


def opened_since(before: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """What is open now and was not, though the collector has run."""
    if descriptors() - before:
        gc.collect()
    return descriptors() - before


def until(happened: Callable[[], bool]) -> None:
    """Return once something has happened that must."""
    end = time.monotonic() + HANG_SECONDS
    while not happened():
        assert time.monotonic() < end, "waited for in vain"
        time.sleep(0.01)


def overstepped(
    run: Callable[[float], Found], is_enough: Callable[[Found], bool]
) -> tuple[float, Found]:
    """What came of a limit in seconds that is to be overstepped, and that limit.

    A busy machine may hold up even what must keep to it: ``is_enough`` says whether it did not, and
    else a longer limit is tried, the longest of which only a hang oversteps.
    """
    for seconds in _LIMITS:
        found = run(seconds)
        if is_enough(found):
            break
    return seconds, found


def wait_for(happened: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    """Return once something has happened, which a process is to do before it ends."""
    while not happened():
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
            assert happened(), "it has ended"


def leave_others_memory() -> None:
    """Have a /dev/shm of one's own, as root: of what lies there nobody can say who has left it."""
    if os.geteuid() or ctypes.CDLL(None).unshare(_NEW_MOUNTS):
        return
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(_SHARED_MEMORY)], check=True)


def unused_segments() -> set[Path]:
    """Shared memory that has a name and that no process has mapped."""
    found = set(_SHARED_MEMORY.iterdir()) if _SHARED_MEMORY.is_dir() else set()
    for maps in Path("/proc").glob("[0-9]*/maps") if found else ():
        with suppress(OSError):
            mapped = maps.read_text(errors="replace")
            found = {path for path in found if str(path) not in mapped}
    return found


def _hear() -> None:
    for number in INTERRUPTS:
        signal.signal(number, signal.SIG_DFL)


HEARS_CTRL_C = {"preexec_fn": _hear}
"""For `Popen`: a test run that a script has put in the background has Ctrl-C ignored, one under
nohup SIGHUP, and both hand that down."""
