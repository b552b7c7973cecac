"""Temporary folders that go with the process that made them, or at the next start of another."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from harness.files import StoreError
from harness.machine.interrupts import held_interrupts

_PREFIX = "gcbench-scratch-"


@contextmanager
def scratch_folder(root: Path | None = None) -> Iterator[Path]:
    """A folder of one's own, whose files may be anyone's that is told of it, removed at the end.

    It lies in ``root``, or in the usual place. Those of processes that were killed are removed
    first. Raises StoreError where none can be made.
    """
    root = root or _root()
    _sweep(root)
    made: tuple[Path, int] | None = None
    try:
        with held_interrupts():
            made = _make(root)
        yield made[0]
    finally:
        with held_interrupts():
            if made is not None:
                shutil.rmtree(made[0], ignore_errors=True)
                os.close(made[1])


@contextmanager
def temporary_files_in_scratch() -> Iterator[None]:
    """Those of this process and of all that it starts are in a scratch folder.

    Raises as `scratch_folder`.
    """
    before, tempdir = os.environ.get("TMPDIR"), tempfile.tempdir
    with scratch_folder() as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        try:
            yield
        finally:
            tempfile.tempdir = tempdir
            if before is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before


def _root() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise StoreError(f"{error.strerror}; set TMPDIR to a folder that can be written") from error


def _make(root: Path) -> tuple[Path, int]:
    """A new folder and the descriptor that keeps it locked. Raises StoreError."""
    while True:
        try:
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        except OSError as error:
            raise StoreError(
                f"no temporary folder can be made in {root}: {error.strerror}; set TMPDIR to a "
                "folder with room"
            ) from error
        # Another process's sweep may have come between: the folder is then locked, or gone.
        with suppress(FileNotFoundError, BlockingIOError):
            descriptor = _lock(folder)
            if folder.exists():
                return folder, descriptor
            os.close(descriptor)


def _lock(folder: Path) -> int:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@cache
def _sweep(root: Path) -> None:
    """Remove what nobody holds any more, once in a process."""
    for folder in root.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # held, gone, or another user's
            descriptor = _lock(folder)
            if os.fstat(descriptor).st_uid == os.getuid():
                shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)
