"""Writing a file whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TEMPORARY = ".tmp"
"""How the names of files end that are being written."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name beside ``path`` to write to, which then takes ``path``'s place.

    Not `tempfile`: its files are readable by their owner alone, and stay so after the rename.
    Raises OSError, which names ``path``.
    """
    temporary = temporary_name(path)
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    except OSError as error:
        if error.errno is None:  # of a library, which says in words what there is to say
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def temporary_name(path: Path) -> Path:
    """What a file is called while it is being written: longer than in the end.

    Unlike any other's: containers that share a folder may have processes of the same number.
    """
    return path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}{TEMPORARY}")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
