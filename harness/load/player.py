"""Plays a process's part of a schedule: sends each request when it is due and may go."""

import asyncio
from time import perf_counter_ns
from typing import Protocol

from engines.protocol import Int32Array, StreamEngine
from harness.load.timer import Timer
from harness.trial.conversations import TurnOrder

_LOOK_NS = 100_000_000
"""How often it looks for requests that take too long."""


class Watch(Protocol):
    """Somebody who looks on."""

    def ended(self, request: int) -> None:
        """A request has."""
        ...

    def look(self) -> None:
        """Ten times a second, whatever happens."""
        ...


class Player:
    """``due_ns``: when each request is due, non-decreasing moments of `time.perf_counter_ns`.

    ``cap``: requests in flight at most, 0 for no cap. ``previous_turn``: as in a schedule, empty
    where none waits. ``until_ns``: the moment from which on nothing more is sent, 0 for none.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        engine: StreamEngine,
        due_ns: list[int],
        cap: int,
        previous_turn: Int32Array,
        watch: Watch,
        until_ns: int = 0,
    ) -> None:
        self._engine = engine
        self._due_ns = due_ns
        self._cap = cap or len(due_ns)
        self._turns = TurnOrder(previous_turn) if len(previous_turn) else None
        self._watch = watch
        self._next = 0
        self._in_flight = 0
        self._num_ended = 0
        self._is_stopped = False
        self._over: asyncio.Future[None] = loop.create_future()
        self._until_ns = until_ns
        self._is_closed = False
        self._timer = Timer(loop, self._send_due)
        self._closing = Timer(loop, self._close)
        self._look = Timer(loop, self._look_for_late)
        engine.on_end = self._ended

    async def play(self) -> None:
        """Until every request has ended, or `stop`."""
        try:
            self._look.set(perf_counter_ns() + _LOOK_NS)
            if self._until_ns:
                self._closing.set(self._until_ns)
            self._send_due()
            await self._over
        finally:
            self._timer.close()
            self._closing.close()
            self._look.close()

    def stop(self) -> None:
        """Send nothing more and break off what is under way."""
        self._is_stopped = True
        for request in range(self._next):
            self._engine.abort_request(request)
        if not self._over.done():
            self._over.set_result(None)

    def _send_due(self) -> None:
        if self._is_stopped or self._is_closed:
            return
        due, turns = self._due_ns, self._turns
        while turns is not None and turns.ready and self._in_flight < self._cap:
            self._send(turns.ready.popleft())
        now = perf_counter_ns()
        while self._next < len(due) and self._in_flight < self._cap:
            if due[self._next] > now:
                self._timer.set(due[self._next])
                return
            request = self._next
            self._next += 1
            if turns is None or turns.may_go(request):
                self._send(request)

    def _send(self, request: int) -> None:
        self._in_flight += 1
        self._engine.add_request(request)

    def _ended(self, request: int) -> None:
        self._in_flight -= 1
        self._num_ended += 1
        self._watch.ended(request)
        if self._num_ended == len(self._due_ns) or (self._is_closed and not self._in_flight):
            if not self._over.done():
                self._over.set_result(None)
            return
        if self._turns is not None:
            self._turns.ended(request, perf_counter_ns())
        if self._turns is not None or self._in_flight == self._cap - 1:
            self._send_due()

    def _close(self) -> None:
        self._is_closed = True
        if not self._in_flight and not self._over.done():
            self._over.set_result(None)

    def _look_for_late(self) -> None:
        self._engine.abort_late()
        self._watch.look()
        self._look.set(perf_counter_ns() + _LOOK_NS)
