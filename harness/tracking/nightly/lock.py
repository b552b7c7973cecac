"""One nightly run at a time, and nothing left over of one that was killed."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from harness.files import StoreError, writing

_MARK = "GCBENCH_NIGHTLY"


class BusyError(RuntimeError):
    """Another run is at work, in one sentence."""


def marked(folder: Path) -> dict[str, str]:
    """The environment of a process that a run starts: by it the next run knows what is left."""
    return os.environ | {_MARK: str(folder)}


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Hold ``folder``, which is made, for one run; when it ends so does all that it has started.

    Raises BusyError where another holds it, StoreError where it cannot be written.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a+b", buffering=0)  # a buffer's rest fails again at its end
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = file.read().decode(errors="replace").strip() or "unknown"
            raise BusyError(
                f"another nightly run (process {who}) is at work in {folder}; let it end"
            ) from None
        with suppress(OSError):  # the lock holds on a full disk too, and all can be said then
            file.truncate(0)
            file.write(f"{os.getpid()}\n".encode())
        try:
            end_what_is_left(folder)  # of a run that was killed: it would spoil our timings
            yield
        finally:
            end_what_is_left(folder)


def end_what_is_left(folder: Path) -> None:
    """Kill every process that a run in ``folder`` has started, and wait for its end."""
    while left := _left(folder):  # until there is none: one may have started another meanwhile
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        _, alive = psutil.wait_procs(left, timeout=30)
        if alive:
            raise StoreError(
                f"process {alive[0].pid} of an earlier run in {folder} does not end; end it by hand"
            )


def _left(folder: Path) -> list[psutil.Process]:
    left = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(_MARK) == str(folder):
                left.append(process)
    return left
