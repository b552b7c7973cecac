"""A `gcbench serve` of one cell, for as long as a block lasts."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil

from engines import tied_process
from engines.protocol import EngineDeadError
from engines.server.settings import API_KEY_VARIABLE
from harness.axes import AXES, Cell
from harness.machine.clean_environment import clean_environment

_READY_SECONDS = 120.0
_LOOK_SECONDS = 0.05
_END_SECONDS = 10.0


class Served(NamedTuple):
    """Where it is, what clients ask for, its processes by role, and where it says what is wrong."""

    url: str
    model: str
    processes: dict[str, psutil.Process]
    errors: Path

    def ended(self) -> str:
        """Why it has ended by itself, in a sentence, or ""."""
        if all(process.is_running() for process in self.processes.values()):
            return ""
        return f"gcbench serve has ended: {_last_words(self.errors) or 'it said nothing'}"

    def cpu_seconds(self) -> dict[str, float]:
        """What each process has used so far, by role."""
        times = {role: process.cpu_times() for role, process in self.processes.items()}
        return {role: each.user + each.system for role, each in times.items()}


def flags_of(cell: Cell, left_out: Sequence[str]) -> list[str]:
    """The flags that build a cell's engine, without those of some axes."""
    said = []
    for axis in AXES.values():
        value = getattr(cell, axis.name)
        if axis.name not in left_out and value != axis.default:
            said += [axis.flag, str(value)]
    return said


@contextmanager
def served(flags: Sequence[str], folder: Path) -> Iterator[Served]:
    """Serve with these flags on a port that is free; ``folder`` is the caller's.

    Raises EngineDeadError where it does not become ready.
    """
    ready, errors = folder / "ready.json", folder / "server.err"
    ready.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-P",
        "-m",
        "gcbench",
        "serve",
        *flags,
        "--port",
        "0",
        "--ready-file",
        str(ready),
        "--grace",
        "0",
    ]
    with errors.open("wb") as said:
        process = tied_process.start_tied(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
            env=_environment(),
        )
    try:
        yield _when_ready(process, ready, errors)
    finally:
        process.terminate()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environment() -> dict[str, str]:
    """A clean one, and no key: its clients have none."""
    environment = clean_environment()
    environment.pop(API_KEY_VARIABLE, None)
    return environment


def _when_ready(process: "subprocess.Popen[bytes]", ready: Path, errors: Path) -> Served:
    deadline = time.monotonic() + _READY_SECONDS
    while not ready.exists():
        if process.poll() is not None:
            why = _last_words(errors) or f"status {process.returncode}"
            raise EngineDeadError(f"gcbench serve did not become ready: {why}")
        if time.monotonic() > deadline:
            raise EngineDeadError(f"gcbench serve did not become ready within {_READY_SECONDS:g} s")
        time.sleep(_LOOK_SECONDS)
    said_ready = msgspec.json.decode(ready.read_bytes())
    front_end = psutil.Process(process.pid)
    processes = {"front end": front_end}
    (processes["engine core"],) = front_end.children()
    return Served(said_ready["url"], said_ready["model"], processes, errors)


def _last_words(errors: Path) -> str:
    said = errors.read_text(errors="replace").strip().splitlines()
    return said[-1].removeprefix("gcbench: ") if said else ""
