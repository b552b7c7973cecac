"""A line for each request that was answered."""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging.handlers import WatchedFileHandler

import msgspec
from aiohttp.abc import AbstractAccessLogger
from aiohttp.web import BaseRequest, StreamResponse

_LOGGER = logging.getLogger(__name__)


class AccessLogger(AbstractAccessLogger):
    """Writes JSON, so that nothing which a client sends can look like another line."""

    def log(self, request: BaseRequest, response: StreamResponse, time_taken: float) -> None:
        """``bytes`` are those of head and body; ``seconds`` end when the kernel has the last byte,
        or when the client has left.
        """
        line = {
            "time": round(time.time(), 3),
            "client": request.remote,
            "method": request.method,
            "path": request.path_qs,
            "status": response.status,
            "bytes": response.body_length,
            "seconds": round(time_taken, 6),
        }
        self.logger.info(msgspec.json.encode(line).decode())


@contextmanager
def access_log(path: str) -> Iterator[logging.Logger | None]:
    """What `AccessLogger` writes to; None for a ``path`` of "". Raises ValueError."""
    if not path:
        yield None
        return
    try:
        file = _File(path, encoding="utf-8")
    except OSError as error:
        raise ValueError(
            f"--axis access-log={path}: {error.strerror}; name a file that can be written"
        ) from None
    logger = logging.Logger("access", logging.INFO)
    logger.addHandler(file)
    try:
        yield logger
    finally:
        with suppress(OSError):  # which has been said
            file.close()


class _File(WatchedFileHandler):
    """Made anew where it was renamed, as logrotate does. What cannot be written is lost."""

    _has_failed = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 -- logging's name
        """A full disk ends no request, and is said once."""
        if not self._has_failed:
            self._has_failed = True
            _LOGGER.error("lines of %s are lost: %s", self.baseFilename, sys.exception())
