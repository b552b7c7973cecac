"""How many connections the server holds, and for how long one may say nothing."""

import asyncio
import logging
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from engines.server.access_log import AccessLogger
from engines.server.errors import RETRY_AFTER_SECONDS, ApiError
from engines.server.settings import ServerSettings

_MOST_DESCRIPTORS = 1 << 16
"""Some programs go through all that they may have, and a container may allow a billion."""
_OTHER_DESCRIPTORS = 128
"""Of a process that serves, beside its connections: sockets to the core, files, interpreters."""


@contextmanager
def raised_descriptor_limit() -> Iterator[None]:
    """Let this process have as many open files as it may; as before where that is refused."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (_finite(each) for each in before)
    if soft < hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def _finite(limit: int) -> int:
    return _MOST_DESCRIPTORS if limit == resource.RLIM_INFINITY else min(limit, _MOST_DESCRIPTORS)


class Connections:
    """Makes aiohttp's protocol of each connection, and knows how many there are.

    No more than there are descriptors for, whatever the settings say: a process without one left
    can look at nothing and accept nobody.
    """

    def __init__(
        self,
        server: web.Server | None,
        settings: ServerSettings,
        logger: logging.Logger,
        access: logging.Logger | None,
    ) -> None:
        assert server is not None
        room = _finite(resource.getrlimit(resource.RLIMIT_NOFILE)[0]) - _OTHER_DESCRIPTORS
        self.most = max(1, min(settings.max_connections, room))
        self.number = 0
        self._server = server
        self.idle_timeout = settings.idle_timeout
        self._logger, self._access = logger, access
        self._loop = asyncio.get_running_loop()
        self.refusal = _full(self.most)

    def __call__(self) -> "ServerConnection":
        """One that is about to be made."""
        return ServerConnection(
            self._server,
            loop=self._loop,
            keepalive_timeout=self.idle_timeout,
            logger=self._logger,
            access_log=self._access,
            access_log_class=AccessLogger,
            connections=self,
        )


class ServerConnection(web.RequestHandler):
    """Closed where it has waited for the head of a request for too long, the first included.

    Not every aiohttp that will do ends its wait for the first one (its pull request 13681).
    """

    __slots__ = ("_connections", "_first_head")

    def __init__(self, manager: web.Server, *, connections: Connections, **options: Any) -> None:
        super().__init__(manager, **options)
        self._connections = connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Refuse it where there are too many."""
        super().connection_made(transport)
        connections = self._connections
        connections.number += 1
        self._first_head = self._loop.call_later(connections.idle_timeout, self._close_silent)
        if connections.number > connections.most:
            cast(asyncio.Transport, transport).write(connections.refusal)
            self.force_close()

    def connection_lost(self, error: BaseException | None) -> None:
        """It has ended."""
        self._connections.number -= 1
        self._first_head.cancel()
        super().connection_lost(error)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What is no HTTP is told so in the form of all errors, without what was sent."""
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        too_long = isinstance(exc, LineTooLong)
        words = "a line of the head is too long" if too_long else "this is no HTTP that is served"
        response = ApiError(431 if too_long else exc.code, words).response()
        response.force_close()
        return response

    def _close_silent(self) -> None:
        if not self._request_count:
            self.force_close()


def _full(most: int) -> bytes:
    error = ApiError(503, f"{most} connections are open, and that is the most; try again later")
    body = error.body()
    head = (
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nRetry-After: {RETRY_AFTER_SECONDS}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body
