"""The end of what a process says: somebody reads along, so that it is never held up."""

from collections import deque
from threading import Thread
from typing import IO

_MOST_KEPT = 1 << 20
_CHUNK = 1 << 16
_WAIT_SECONDS = 5
"""For the end: a process of nobody's group may hold the pipe open for ever."""


class Tail:
    """Reads a pipe to its end in a thread of its own, and keeps the last megabyte."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self.num_bytes = 0
        self._pipe = pipe
        self._kept: deque[bytes] = deque(maxlen=_MOST_KEPT // _CHUNK)
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while data := self._pipe.read(_CHUNK):
            self.num_bytes += len(data)
            if self._kept and len(self._kept[-1]) + len(data) <= _CHUNK:
                data = self._kept.pop() + data
            self._kept.append(data)
        self._pipe.close()

    def wait(self) -> None:
        """Return when all who could say something have ended, and the pipe is closed."""
        self._thread.join(_WAIT_SECONDS)

    def text(self) -> str:
        """What is kept so far."""
        return b"".join(self._kept.copy()).decode(errors="replace")
