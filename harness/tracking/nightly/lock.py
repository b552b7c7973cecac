"""One nightly run at a time, and nothing left over of one that was killed."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

from harness.files import StoreError, writing
from harness.machine.held import HeldError, held

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
    with ExitStack() as stack:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                stack.enter_context(held(folder / "lock"))
            except HeldError as error:
                raise BusyError(
                    f"another nightly run is at work in {folder}: {error.owner}; let it end"
                ) from None
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
