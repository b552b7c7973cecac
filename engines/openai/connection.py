"""One connection to the server: stamps what comes as it comes, and looks at it no further."""

import asyncio
import ssl
from time import perf_counter_ns
from typing import Protocol, cast

import httptools

from engines.openai.outcome import Outcome


class Owner(Protocol):
    """Whoever lends connections to requests."""

    def append(self, stamp_ns: int, request: int, piece: bytes) -> None:
        """Keep what came."""
        ...

    def first_bytes(self, request: int, stamp_ns: int) -> None:
        """The first event of an answer is there."""
        ...

    def answered(self, connection: "Connection", request: int, *, keep: bool) -> None:
        """An HTTP message has come to its end; ``keep``: the connection can carry another."""
        ...

    def broken(self, connection: "Connection", request: int, outcome: Outcome) -> None:
        """The connection is gone; ``request`` -1: it carried none."""
        ...


class Connection(asyncio.Protocol):
    """HTTP/1.1, one request at a time. ``idle_since_ns``: when it last had nothing to do."""

    __slots__ = (
        "_append",
        "_feed",
        "_has_begun",
        "_is_waiting",
        "_owner",
        "_parser",
        "idle_since_ns",
        "is_open",
        "request",
        "transport",
    )

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._append = owner.append
        self._parser = httptools.HttpResponseParser(self)
        self._feed = self._parser.feed_data
        self.request = -1
        self.idle_since_ns = 0
        self.is_open = False
        self._has_begun = False
        self._is_waiting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The way is there."""
        self.transport = cast(asyncio.Transport, transport)
        self.is_open = True
        self.idle_since_ns = perf_counter_ns()

    def send(self, request: int, content: bytes) -> None:
        """Carry a request, nothing else being under way."""
        self.request = request
        self._has_begun = False
        self._is_waiting = True
        self.transport.write(content)

    def data_received(self, data: bytes) -> None:
        """The hot path: a stamp, three stores and the parser's search for the message's end."""
        now = perf_counter_ns()
        request = self.request
        if request < 0:  # nobody has asked: such a connection carries nothing more
            self.transport.abort()
            return
        self._append(now, request, data)
        if self._is_waiting:
            self._has_begun = True
            if b"data:" in data:
                self._is_waiting = False
                self._owner.first_bytes(request, now)
        try:
            self._feed(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._end(Outcome.MALFORMED)
            self.transport.abort()

    def on_message_complete(self) -> None:
        """Called by the parser, from within `data_received`."""
        if self._parser.get_status_code() < 200:
            return  # 100 Continue and 103 Early Hints come before the answer
        request, self.request = self.request, -1
        self.idle_since_ns = perf_counter_ns()
        self._owner.answered(self, request, keep=self._parser.should_keep_alive())

    def connection_lost(self, error: Exception | None) -> None:
        """The server, the network or `abort` has ended it."""
        self.is_open = False
        if isinstance(error, ssl.SSLError):
            self._end(Outcome.TLS_ERROR)
        elif not self._has_begun or isinstance(error, ConnectionError):
            self._end(Outcome.RESET)
        else:
            self._end(Outcome.CLOSED_EARLY)

    def abort(self) -> int:
        """Break it off; the request that it carried, -1 for none, is no longer its own."""
        request, self.request = self.request, -1
        self.transport.abort()
        return request

    def _end(self, outcome: Outcome) -> None:
        request, self.request = self.request, -1
        self._owner.broken(self, request, outcome)
