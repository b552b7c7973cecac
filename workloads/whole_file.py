"""Writing a file whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name beside ``path`` to write to, which then takes ``path``'s place.

    Not `tempfile`: its files are readable by their owner alone, and stay so after the rename.
    Raises OSError.
    """
    temporary = temporary_name(path)
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    finally:
        with suppress(OSError):
            temporary.unlink()


def temporary_name(path: Path) -> Path:
    """What a file is called while it is being written: longer than in the end."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
