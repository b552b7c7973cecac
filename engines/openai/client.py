"""Requests over a pool of kept connections, stamped; what they were answered is read afterwards."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from time import perf_counter_ns

import numpy as np
from numpy.typing import NDArray

from engines.openai.capture import Capture, Recording
from engines.openai.connection import Connection
from engines.openai.outcome import Outcome
from engines.openai.target import Target
from engines.protocol import Int32Array

_MOST_IDLE_NS = 4_000_000_000
"""uvicorn, and so vLLM and SGLang, closes a connection that has been idle for five seconds: a
request on it would cross with the end."""

_CONNECTED_AT_ONCE = 32


class Client:
    """A `StreamEngine`. Requests are numbers into ``contents``, whole HTTP requests as bytes.

    ``asked`` int32 ``[N]``: the output tokens of each at most. ``on_end(request)`` is called when
    nothing more of one is to come, whatever became of it. ``timeout_ns``: from its start, 0 for
    none. Everything runs in ``loop``.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        target: Target,
        contents: Sequence[bytes],
        asked: Int32Array,
        capacity: int,
        timeout_ns: int = 0,
    ) -> None:
        count = len(contents)
        self._loop = loop
        self._target = target
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
        self._address = ""
        self._idle: list[Connection] = []
        # In the order in which they were sent, so that the first is the first to be too old.
        self._under_way: dict[int, Connection | asyncio.Task[None]] = {}

    @property
    def num_in_flight(self) -> int:
        """Requests that were sent and have not ended."""
        return len(self._under_way)

    async def connect(self, count: int) -> None:
        """Open so many connections, a few at a time, or as many as the server takes."""
        try:
            self._idle.append(await self._open())
        except OSError:
            return  # requests will see why
        for first in range(1, count, _CONNECTED_AT_ONCE):
            some = min(count - first, _CONNECTED_AT_ONCE)
            opened = await asyncio.gather(
                *(self._open() for _ in range(some)), return_exceptions=True
            )
            self._idle += [each for each in opened if isinstance(each, Connection)]

    def add_request(self, request_index: int) -> None:
        """Send it now, on a connection that is free or on a new one."""
        now = self._sent[request_index] = perf_counter_ns()
        connection = self._free(now)
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

    def close(self) -> None:
        """Let go of the free connections."""
        for connection in self._idle:
            connection.abort()
        self._idle.clear()

    def first_bytes(self, request: int, stamp_ns: int) -> None:
        """See `connection.Owner`."""
        self._first[request] = stamp_ns

    def answered(self, connection: Connection, request: int, *, keep: bool) -> None:
        """See `connection.Owner`."""
        if keep:
            self._idle.append(connection)
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

    def _free(self, now_ns: int) -> Connection | None:
        """The one that was used last: the longer one is idle, the sooner the server closes it."""
        idle = self._idle
        while idle:
            connection = idle.pop()
            if connection.is_open and now_ns - connection.idle_since_ns < _MOST_IDLE_NS:
                return connection
            connection.abort()
        return None

    def _send(self, connection: Connection, request: int) -> None:
        self._under_way[request] = connection
        connection.send(request, self._contents[request])
        self._written[request] = perf_counter_ns()

    async def _send_on_new(self, request: int) -> None:
        try:
            connection = await self._open()
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

    async def _open(self) -> Connection:
        target = self._target
        transport, connection = await self._loop.create_connection(
            lambda: Connection(self),
            self._address or target.host,
            target.port,
            ssl=target.tls,
            server_hostname=target.host if target.tls else None,
        )
        # A name is looked up once, not in a thread for each connection.
        self._address = self._address or transport.get_extra_info("peername")[0]
        return connection
