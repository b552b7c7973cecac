"""Forks of a prepared interpreter, which hands over each one's pipes and tells of its end."""

import os
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from harness.running.conversation import Conversation, Pipes, ProcessEnd
from harness.running.forking import ForkNews
from harness.running.listener import Listener

_KILLED = -int(signal.SIGKILL)
_GRACE_SECONDS = 1.0


class Fork(Conversation):
    """With one of ``parent``'s. Where that ends too early, what came of it came of the fork."""

    def __init__(self, parent: Conversation, listener: Listener) -> None:
        super().__init__(listener)
        self._parent = parent
        self._pid = 0
        self._told: int | None = None

    @property
    def pid(self) -> int:
        """Its number. Raises ProcessLookupError where it was not forked."""
        if not self._pid:
            raise ProcessLookupError("the trial was not forked")
        return self._pid

    def has_ended(self) -> bool:
        """Whether it has, or nobody is left who would say so."""
        return self._told is not None or self._parent.has_ended()

    def hear_out(self, deadline: float) -> ProcessEnd:
        """Its own, or its parent's where that told nothing of its end."""
        found = super().hear_out(deadline)
        return found if self._told is not None else self._parent.hear_out(deadline)

    def take(self, news: ForkNews, ends: Sequence[int]) -> None:
        """What the parent tells of it; ``ends``: of its pipes, once it has begun."""
        if news.status is not None:
            self._told = news.status
            return
        asked, said, wrong = ends
        self._pid = news.pid
        hear, read = (os.fdopen(end, "rb", 0) for end in (said, wrong))
        self._begin(Pipes(os.fdopen(asked, "wb", 0), hear, read))

    def _end(self) -> int:
        self._listener.listen(0)
        if self._pid and self._told is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            # Nobody needs to wait for more than its end, and its parent may be stopped.
            deadline = time.monotonic() + _GRACE_SECONDS
            while not self.has_ended() and (left := deadline - time.monotonic()) > 0:
                self._listener.listen(left)
        return _KILLED if self._told is None else self._told


def forks_of(
    parent: Conversation, news: socket.socket, count: int, listener: Listener
) -> list[Fork]:
    """So many, in the order in which they will be forked; the parent tells of them by ``news``."""
    forks = [Fork(parent, listener) for _ in range(count)]
    news.setblocking(False)

    def take() -> None:
        with suppress(BlockingIOError):
            # One receipt has the descriptors of one fork at most, and whole lines.
            while True:
                lines, ends, _, _ = socket.recv_fds(news, 1 << 16, len(Pipes._fields))
                if not lines:
                    listener.drop(news)
                    return
                for line in lines.splitlines():
                    told = msgspec.json.decode(line, type=ForkNews)
                    forks[told.index].take(told, ends)

    listener.add(news, take)
    return forks
