"""How long this thread was ready to run and another had its core, as Linux counts it."""

import os
from contextlib import suppress
from typing import Self

PATH = "/proc/thread-self/schedstat"


class RunQueue:
    """Of the thread that enters it, if ``is_told``; what it sleeps by itself is not counted.

    The second figure of ``/proc/thread-self/schedstat`` (Linux, Documentation/scheduler/
    sched-stats). Another guest of the same host is not seen. ``tells``: whether it has counted.
    """

    def __init__(self, *, is_told: bool = True) -> None:
        self._is_told = is_told
        self._file = -1
        self.tells = False

    def __enter__(self) -> Self:
        if not self._is_told:
            return self
        with suppress(OSError):
            self._file = os.open(PATH, os.O_RDONLY | os.O_CLOEXEC)
            if not os.pread(self._file, 64, 0).strip():
                self.__exit__()
        self.tells = self._file >= 0
        return self

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def waited_ns(self) -> int:
        """Nanoseconds since the thread began; always 0 where nobody tells."""
        return int(os.pread(self._file, 64, 0).split()[1]) if self._file >= 0 else 0
