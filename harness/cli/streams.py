"""Standard output and error whose failures are told from all others, and that print anywhere."""

import codecs
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO


class OutputError(Exception):
    """Standard output took no more; the cause says why.

    No OSError: of those click and rich make exit status 1 where a pipe is broken.
    """


@contextmanager
def standard_streams() -> Iterator[None]:
    """Put streams in the place of the process's own, unless somebody has replaced those.

    What standard output does not take is an `OutputError`; what standard error does not take is
    dropped. Characters that a stream's encoding lacks are replaced.
    """
    _open_closed_descriptors()
    before = sys.stdout, sys.stderr
    if sys.stdout is sys.__stdout__:
        sys.stdout = _stream(1, sys.__stdout__, must_arrive=True)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _stream(2, sys.__stderr__, must_arrive=False)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OutputError):
                stream.flush()
        sys.stdout, sys.stderr = before


def _open_closed_descriptors() -> None:
    """A file opened later must not get the number of a closed stream, and be printed to."""
    for descriptor, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, flags)  # takes the lowest free number; output cannot be written


def _stream(descriptor: int, own: TextIO | None, *, must_arrive: bool) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(_Descriptor(descriptor, must_arrive)),
        encoding=own.encoding if own else "utf-8",
        errors=_REPLACE,
        line_buffering=not must_arrive or os.isatty(descriptor),
        write_through=bool(os.environ.get("PYTHONUNBUFFERED")),
    )


class _Descriptor(io.RawIOBase):
    """A file descriptor that, once it has failed, takes everything and keeps nothing."""

    def __init__(self, descriptor: int, must_arrive: bool) -> None:
        self._descriptor, self._must_arrive = descriptor, must_arrive
        self._has_failed = False

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self._has_failed:
            return len(data)
        try:
            return os.write(self._descriptor, data)
        except OSError as error:
            self._has_failed = True
            if self._must_arrive:
                why = "it is closed" if error.errno == errno.EBADF else error.strerror
                raise OutputError(why) from error
            return len(data)


_REPLACE = "gcbench.replace"
_SUBSTITUTES = {
    "µ": "u",
    "×": "x",
    "±": "+-",
    "²": "2",
    "–": "-",
    "…": "...",
    "→": "->",
    "·": "|",
    "▲": "^",
    "▼": "v",
    "✓": "+",
    "✗": "x",
    "⇅": "~",
    "█": "#",
    "▒": "-",
    "│": "|",
    "─": "-",
    "└": "+",
    "▁": ".",
    "▂": ".",
    "▃": ".",
    "▄": "#",
    "▅": "#",
    "▆": "#",
    "▇": "#",
}
"""For a terminal that has only ASCII, where "?" already means "inconclusive"."""


def _replace(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    missing = error.object[error.start : error.end]
    return "".join(_SUBSTITUTES.get(character, "?") for character in missing), error.end


codecs.register_error(_REPLACE, _replace)
