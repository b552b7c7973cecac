"""Conversations: a turn whose earlier one has not ended waits, and holds up nobody else."""

from array import array
from collections import deque

import numpy as np

from engines.protocol import Int32Array


class TurnOrder:
    """``previous_turn`` int32 ``[N]``: the request whose end each waits for, -1 for none.

    ``ready``: requests that have arrived and that nothing keeps any longer, in that order. Numbers
    only: a turn adds no object that the collector tracks.
    """

    def __init__(self, previous_turn: Int32Array) -> None:
        count = len(previous_turn)
        by_previous = np.argsort(previous_turn, kind="stable")
        starts = np.searchsorted(previous_turn[by_previous], np.arange(count + 1))
        self._previous: list[int] = previous_turn.tolist()
        self._followers: list[int] = by_previous.tolist()
        self._starts: list[int] = starts.tolist()
        self._ended_ns: array[int] = array("q", bytes(8 * count))
        self._waits = bytearray(count)
        self.ready: deque[int] = deque()

    def may_go(self, index: int) -> bool:
        """Whether a request that has just arrived can be sent; if not, it becomes ready later."""
        previous = self._previous[index]
        if previous < 0 or self._ended_ns[previous]:
            return True
        self._waits[index] = True
        return False

    def free_since(self, index: int) -> int:
        """The end of the turn before one that may go, in nanoseconds; 0 where there is none."""
        previous = self._previous[index]
        return self._ended_ns[previous] if previous >= 0 else 0

    def ended(self, index: int, now_ns: int) -> None:
        """A request has ended: those that have arrived and wait for it are ready."""
        self._ended_ns[index] = now_ns
        for place in range(self._starts[index], self._starts[index + 1]):
            follower = self._followers[place]
            if self._waits[follower]:
                self.ready.append(follower)
