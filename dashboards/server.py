"""A site served to this machine's browsers, and to nobody else's."""

import sys
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_OWN_NAMES = ("127.0.0.1", "localhost")


class _Quiet(SimpleHTTPRequestHandler):
    """Says nothing of requests, and lets no browser keep what the next build may change.

    Answers only to this machine's own names: a page from elsewhere can have its name resolve to
    this machine and then read what it is sent, but its requests carry that name. The port may be
    another, that of a tunnel.
    """

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if _host_name(self.headers.get_all("Host", [])) in _OWN_NAMES:
            return True
        self.send_error(HTTPStatus.MISDIRECTED_REQUEST, f"Ask for {' or '.join(_OWN_NAMES)}")
        return False

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


class _Server(ThreadingHTTPServer):
    """A client that leaves in the middle is no error."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
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
