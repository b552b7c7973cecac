"""Requests over kept connections, stamped; what they were answered is read afterwards."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from time import perf_counter_ns

import numpy as np
from numpy.typing import NDArray

from engines.openai.capture import Capture, Recording
from engines.openai.connection import Connection
from engines.openai.outcome import Outcome
from engines.openai.pool import Pool
from engines.openai.response import Response, read_response
from engines.openai.target import Target
from engines.protocol import Int32Array


class Client:
    """A `StreamEngine`. Requests are numbers into ``contents``, whole HTTP requests as bytes, which
    are looked up when they are sent; request i goes to target ``whose[i]``, the first by default.

    ``asked`` int32 ``[N]``: the output tokens of each at most. ``on_end(request)`` is called when
    nothing more of one is to come, whatever became of it. ``timeout_ns``: from its start, 0 for
    none. Everything runs in ``loop``.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        targets: Sequence[Target],
        contents: Sequence[bytes],
        asked: Int32Array,
        capacity: int,
        timeout_ns: int = 0,
        whose: Sequence[int] = (),
    ) -> None:
        count = len(contents)
        self._loop = loop
        self._pools = [Pool(loop, target, self) for target in targets]
        self._pool_of = [self._pools[place] for place in whose or [0] * count]
        self._contents = contents
        self._asked = asked
        self._capture = Capture(capacity)
        self._timeout_ns = timeout_ns
        self.append = self._capture.append
        self.on_end: Callable[[int], object] = int
        self.sent_ns = np.zeros(count, np.int64)
        self.first_ns = np.zeros(count, np.int64)
        self.written_ns = np.zeros(count, np.int64)
        self.ended_ns = np.zeros(count, np.int64)
        self.ended: NDArray[np.int8] = np.zeros(count, np.int8)
        # Item access of a memoryview makes no NumPy scalar.
        self._sent, self._first = self.sent_ns.data, self.first_ns.data
        self._written, self._end_times = self.written_ns.data, self.ended_ns.data
        self._ended = self.ended.data
        # In the order in which they were sent, so that the first is the first to be too old.
        self._under_way: dict[int, Connection | asyncio.Task[None]] = {}

    @property
    def num_in_flight(self) -> int:
        """Requests that were sent and have not ended."""
        return len(self._under_way)

    async def connect(self, count: int) -> None:
        """Open so many connections, as many to each server."""
        for pool in self._pools:
            await pool.fill(-(-count // len(self._pools)))

    def add_request(self, request_index: int) -> None:
        """Send it now, on a connection that is free or on a new one."""
        now = self._sent[request_index] = perf_counter_ns()
        connection = self._pool_of[request_index].free(now)
        if connection is None:
            task = self._loop.create_task(self._send_on_new(request_index))
            self._under_way[request_index] = task
        else:
            self._send(connection, request_index)

    def abort_request(self, request_index: int) -> None:
        """Break it off, where it is under way."""
        self._abort(request_index, Outcome.INTERRUPTED)

    def abort_late(self) -> None:
        """Break off what has been under way for longer than it may."""
        if not self._timeout_ns:
            return
        oldest = perf_counter_ns() - self._timeout_ns
        while self._under_way:
            request = next(iter(self._under_way))
            if self._sent[request] > oldest:
                return
            self._abort(request, Outcome.TIMED_OUT)

    def forget(self) -> None:
        """What was recorded so far is nobody's: it was a warm-up."""
        self._capture.clear()
        for column in (self.sent_ns, self.first_ns, self.written_ns, self.ended_ns, self.ended):
            column[:] = 0

    def recording(self, count: int) -> Recording:
        """What the first ``count`` requests have brought."""
        return Recording(
            self.sent_ns[:count],
            self.written_ns[:count],
            self.ended_ns[:count],
            self.ended[:count],
            self._asked[:count],
            *self._capture.pieces(),
        )

    def response(self, request: int) -> Response:
        """What one that has ended was answered."""
        pieces = self._capture.of(request, self._sent[request])
        return read_response(pieces, Outcome(self._ended[request]), int(self._asked[request]))

    def close(self) -> None:
        """Let go of the free connections."""
        for pool in self._pools:
            pool.close()

    def first_bytes(self, request: int, stamp_ns: int) -> None:
        """See `connection.Owner`."""
        self._first[request] = stamp_ns

    def answered(self, connection: Connection, request: int, *, keep: bool) -> None:
        """See `connection.Owner`."""
        if keep and request >= 0:
            self._pool_of[request].keep(connection)
        else:
            connection.transport.close()
        if request >= 0:
            self._finish(request, Outcome.COMPLETED)

    def broken(self, connection: Connection, request: int, outcome: Outcome) -> None:
        """See `connection.Owner`."""
        if request >= 0:
            self._finish(request, outcome)

    def _abort(self, request: int, outcome: Outcome) -> None:
        carrier = self._under_way.get(request)
        if carrier is None:
            return
        if isinstance(carrier, Connection):
            carrier.abort()
        else:
            carrier.cancel()
        self._finish(request, outcome)

    def _finish(self, request: int, outcome: Outcome) -> None:
        del self._under_way[request]
        self._end_times[request] = perf_counter_ns()
        self._ended[request] = outcome
        self.on_end(request)

    def _send(self, connection: Connection, request: int) -> None:
        self._under_way[request] = connection
        connection.send(request, self._contents[request])
        self._written[request] = perf_counter_ns()

    async def _send_on_new(self, request: int) -> None:
        try:
            connection = await self._pool_of[request].open()
        except ssl.SSLError:
            self._finish(request, Outcome.TLS_ERROR)
        except ConnectionResetError:
            self._finish(request, Outcome.RESET)
        except OSError:
            self._finish(request, Outcome.REFUSED)
        else:
            if connection.is_open:
                self._send(connection, request)
            else:  # it was lost while this task waited for its turn
                self._finish(request, Outcome.RESET)
