"""Processes that end with the one that started them, whatever becomes of it."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from threading import Lock
from typing import Any


def start_tied(command: Sequence[str], **options: Any) -> "subprocess.Popen[bytes]":
    """`subprocess.Popen` with the same options, of a process that Linux kills when this one ends.

    With ``start_new_session`` it kills all of its process group. Elsewhere than on Linux nothing
    ties the two. Raises OSError where it cannot be started.
    """
    if sys.platform != "linux":
        return subprocess.Popen(command, **options)
    # An opening of its own for each process: a signal's addressee belongs to the opening. The
    # process inherits it and needs to do nothing, so that it is tied while it imports, too. With
    # PR_SET_PDEATHSIG it would do so itself, late, and end with the *thread* that started it.
    end = _PIPE.open_read_end()
    try:
        passed = (*options.pop("pass_fds", ()), end)
        process = subprocess.Popen(command, pass_fds=passed, **options)
        leads_group = options.get("start_new_session", False)
        fcntl.fcntl(end, fcntl.F_SETOWN, -process.pid if leads_group else process.pid)
        fcntl.fcntl(end, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(end, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
    finally:
        os.close(end)
    return process


class _Pipe:
    """Nobody writes to it. It is closed when this process has ended, not before."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._write_end: int | None = None

    def open_read_end(self) -> int:
        """A new opening of it. Raises OSError."""
        with self._lock:
            if self._write_end is None:
                read_end, self._write_end = os.pipe()
                os.close(read_end)
            return os.open(f"/proc/self/fd/{self._write_end}", os.O_RDONLY | os.O_NONBLOCK)

    def forget(self) -> None:
        """In a fork, which must not keep the parent's children alive."""
        self._lock = Lock()
        if self._write_end is not None:
            os.close(self._write_end)
            self._write_end = None


_PIPE = _Pipe()
os.register_at_fork(after_in_child=_PIPE.forget)
