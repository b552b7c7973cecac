"""Processes that tests start: how they are to begin, and whether they have ended."""

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from harness.machine.interrupts import INTERRUPTS

_SHARED_MEMORY = Path("/dev/shm")
_NEW_MOUNTS = 0x00020000
"""`CLONE_NEWNS`."""


def is_alive(process: psutil.Process) -> bool:
    """Not so one that has ended and that nobody has asked for its status yet."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


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
