"""Connections to one server that are kept for the next request."""

import asyncio

from engines.openai.connection import Connection, Owner
from engines.openai.target import Target

_MOST_IDLE_NS = 4_000_000_000
"""uvicorn, and so vLLM and SGLang, closes a connection that has been idle for five seconds: a
request on it would cross with the end."""

_CONNECTED_AT_ONCE = 32


class Pool:
    """Of a target, in ``loop``; ``owner`` is told what comes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, target: Target, owner: Owner) -> None:
        self._loop = loop
        self._target = target
        self._owner = owner
        self._address = ""
        self._idle: list[Connection] = []
        self.keep = self._idle.append

    def free(self, now_ns: int) -> Connection | None:
        """The one that was used last: the longer one is idle, the sooner the server closes it."""
        idle = self._idle
        while idle:
            connection = idle.pop()
            if connection.is_open and now_ns - connection.idle_since_ns < _MOST_IDLE_NS:
                return connection
            connection.abort()
        return None

    async def open(self) -> Connection:
        """A new one. Raises OSError, of which ssl.SSLError is a kind."""
        target = self._target
        transport, connection = await self._loop.create_connection(
            lambda: Connection(self._owner),
            self._address or target.host,
            target.port,
            ssl=target.tls,
            server_hostname=target.host if target.tls else None,
        )
        # A name is looked up once, not in a thread for each connection.
        self._address = self._address or transport.get_extra_info("peername")[0]
        return connection

    async def fill(self, count: int) -> None:
        """Open so many, a few at a time, or as many as the server takes."""
        try:
            self.keep(await self.open())
        except OSError:
            return  # requests will see why
        for first in range(1, count, _CONNECTED_AT_ONCE):
            some = min(count - first, _CONNECTED_AT_ONCE)
            opened = await asyncio.gather(
                *(self.open() for _ in range(some)), return_exceptions=True
            )
            self._idle += [each for each in opened if isinstance(each, Connection)]

    def close(self) -> None:
        """Let go of the free ones."""
        for connection in self._idle:
            connection.abort()
        self._idle.clear()
