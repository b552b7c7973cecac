"""Hears several processes at once: while one is waited for, no other is held up by a full pipe."""

import selectors
from collections.abc import Callable
from typing import Protocol


class _Stream(Protocol):
    def fileno(self) -> int: ...


class Listener:
    """Calls, for each stream, the function that takes what is there to be read."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def add(self, stream: _Stream, take: Callable[[], None]) -> None:
        """Heed a stream, until it is dropped."""
        self._selector.register(stream, selectors.EVENT_READ, take)

    def drop(self, stream: _Stream) -> None:
        """Heed it no more, if it was; it is still open."""
        if stream in self._selector.get_map():
            self._selector.unregister(stream)

    def listen(self, seconds: float) -> None:
        """Wait for so long at most, until anybody has said something."""
        for key, _ in self._selector.select(seconds):
            key.data()

    def close(self) -> None:
        """Heed nothing any more."""
        self._selector.close()
