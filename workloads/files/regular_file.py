"""Reading somebody's file: a regular one, whole, and only if it is no larger than expected."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EFBIG, EINVAL, EISDIR
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import BinaryIO

MOST_BYTES = 64 * 2**20


@contextmanager
def open_regular(path: Path, most: int = MOST_BYTES) -> Iterator[BinaryIO]:
    """Open a file of at most ``most`` bytes to read it.

    Raises OSError, whose ``strerror`` says why, for a larger one and for a pipe, a device or a
    socket: no reader waits for a pipe's writer or reads a device that has no end.
    """
    # Without O_NONBLOCK, opening a pipe waits for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if S_ISDIR(status.st_mode):
            raise OSError(EISDIR, os.strerror(EISDIR), str(path))
        if not S_ISREG(status.st_mode):
            raise OSError(EINVAL, "it is no regular file", str(path))
        if status.st_size > most:
            raise _too_large(path, most)
        file = os.fdopen(descriptor, "rb", closefd=False)
        with file:
            yield file
    finally:
        os.close(descriptor)


def read_regular(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of such a file. Raises OSError as `open_regular`, also where it grows."""
    with open_regular(path, most) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise _too_large(path, most)
    return content


def _too_large(path: Path, most: int) -> OSError:
    return OSError(EFBIG, f"it is larger than {most:,} bytes, the most that is read", str(path))
