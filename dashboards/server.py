"""A site served to this machine's browsers, and to nobody else's."""

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _Quiet(SimpleHTTPRequestHandler):
    """Says nothing of requests, and lets no browser keep what the next build may change."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


def listening(port: int) -> ThreadingHTTPServer:
    """A server that has its port and no site yet. Raises ValueError where it cannot have it."""
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), _Quiet)
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
