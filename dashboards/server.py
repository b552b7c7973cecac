"""A site served to this machine's browsers, and to nobody else's."""

import socket
import sys
import time
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedReader, RawIOBase
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import urlsplit

_OWN_NAMES = ("127.0.0.1", "localhost")
MOST_CONNECTIONS = 64
"""At once, each with a thread; a browser opens six."""
HEAD_SECONDS, _SEND_SECONDS, _MAKES_ROOM_SECONDS = 10.0, 30.0, 1.0
"""Until a request's head is here, and in which a reader takes something."""
_HEADERS = {
    "Allow": "GET, HEAD",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}
_FULL = b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"


class _Quiet(SimpleHTTPRequestHandler):
    """Says nothing of requests, and lets no browser keep what the next build may change.

    Answers only to this machine's own names: a page from elsewhere can have its name resolve to
    this machine and then read what it is sent, but its requests carry that name. The port may be
    another, that of a tunnel.
    """

    default_request_version = "HTTP/1.0"  # else what is no HTTP is answered by what is none
    server_version, sys_version = "gcbench", ""
    extensions_map = {
        **SimpleHTTPRequestHandler.extensions_map,
        ".html": "text/html; charset=utf-8",
    }
    server: "_Server"

    def setup(self) -> None:
        super().setup()
        self.rfile = BufferedReader(_Head(self.connection))

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        self.server.has_spoken(self.request)
        target = urlsplit(self.path)
        if target.scheme == "http":  # as one asks a proxy
            self.headers.replace_header("Host", target.netloc)
            self.path = target._replace(scheme="", netloc="").geturl() or "/"
        if _host_name(self.headers.get_all("Host", [])) in _OWN_NAMES:
            return True
        self.send_error(HTTPStatus.MISDIRECTED_REQUEST, f"Ask for {' or '.join(_OWN_NAMES)}")
        return False

    def send_head(self) -> Any:
        """Of a file of the site; what a link in it leads to elsewhere is none."""
        try:
            site = Path(self.directory).resolve()
            is_there = Path(self.translate_path(self.path)).resolve().is_relative_to(site)
        except (OSError, RuntimeError, ValueError):  # a loop of links, or no name of any file
            is_there = False
        if is_there:
            return super().send_head()
        self.send_error(HTTPStatus.NOT_FOUND)
        return None

    def end_headers(self) -> None:
        for header in _HEADERS.items():
            self.send_header(*header)
        super().end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code, message = HTTPStatus.METHOD_NOT_ALLOWED, None
        super().send_error(code, message, explain)

    def log_message(self, *_: object) -> None:
        """Nothing."""


class _Head(RawIOBase):
    """What comes on a connection until the head should be here; raises TimeoutError from then on.

    A limit for each read alone would let a byte at a time hold a thread for ever.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._until = connection, time.monotonic() + HEAD_SECONDS

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        try:
            return self._connection.recv_into(buffer)
        finally:
            self._connection.settimeout(_SEND_SECONDS)


class _Server(ThreadingHTTPServer):
    """A client that leaves in the middle is no error, and there is an end to how many there are."""

    request_queue_size = 1024

    def __init__(self, *arguments: Any) -> None:
        self._room = BoundedSemaphore(MOST_CONNECTIONS)
        self._silent: dict[socket.socket, None] = {}
        super().__init__(*arguments)

    def has_spoken(self, request: socket.socket) -> None:
        """Its head is here, so it keeps its place."""
        self._silent.pop(request, None)

    def _takes_place_of_the_silent(self) -> bool:
        """Whoever is waited for longest makes room."""
        request = next(iter(list(self._silent)), None)  # a copy: threads take out their own
        if request is None:
            return False
        self.has_spoken(request)
        with suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)
        return self._room.acquire(timeout=_MAKES_ROOM_SECONDS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own, unless there are too many."""
        if self._room.acquire(blocking=False) or self._takes_place_of_the_silent():
            self._silent[request] = None
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            request.setblocking(False)
            request.send(_FULL)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Until the connection has ended."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.has_spoken(request)
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def _host_name(said: list[str]) -> str:
    """The name of a Host header, less the port; "" where there is none, or more than one."""
    try:
        return (urlsplit(f"//{said[0]}").hostname or "") if len(said) == 1 else ""
    except ValueError:
        return ""


def listening(port: int) -> ThreadingHTTPServer:
    """A server that has its port and no site yet. Raises ValueError where it cannot have it."""
    try:
        return _Server(("127.0.0.1", port), _Quiet)
    except OSError as error:
        raise ValueError(
            f"port {port} cannot be listened at: {error.strerror or error}; give another with "
            "--port, or 0 for one that is free"
        ) from error


def serve_until_interrupted(server: ThreadingHTTPServer, site: Path) -> None:
    """Serve the files of a folder; returns after Ctrl-C."""
    server.RequestHandlerClass = partial(_Quiet, directory=str(site))
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
