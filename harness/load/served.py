"""A `gcbench serve` of one cell, for as long as a block lasts."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, NamedTuple

import msgspec
import psutil

from engines.protocol import EngineDeadError
from engines.server.settings import API_KEY_VARIABLE
from harness.axes import AXES, Cell
from harness.machine.clean_environment import clean_environment
from harness.running.group import Group, started

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


SERVER_DECIDES = (
    "workload",
    "engine",
    "release",
    "python",
    "engine_core",
    "request_streams",
    "output_processing",
    "scheduler",
)
"""Axes that a server decides itself, or that say what is measured."""


def flags_of(cell: Cell) -> list[str]:
    """The flags with which a server builds a cell's engine."""
    said = []
    for axis in AXES.values():
        value = getattr(cell, axis.name)
        if axis.name not in SERVER_DECIDES and value != axis.default:
            said += axis.words(value)
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
        "--axis",
        "grace=0",
    ]
    options: dict[str, Any] = {"stdin": DEVNULL, "stdout": DEVNULL, "env": _environment()}
    with (
        errors.open("wb") as said,
        started(command, grace_seconds=_END_SECONDS, stderr=said, **options) as server,
    ):
        yield _when_ready(server, ready, errors)


def _environment() -> dict[str, str]:
    """A clean one, and no key: its clients have none."""
    environment = clean_environment()
    environment.pop(API_KEY_VARIABLE, None)
    return environment


def _when_ready(server: Group, ready: Path, errors: Path) -> Served:
    deadline = time.monotonic() + _READY_SECONDS
    while not ready.exists():
        if server.has_ended():
            why = _last_words(errors) or f"status {server.end()}"
            raise EngineDeadError(f"gcbench serve did not become ready: {why}")
        if time.monotonic() > deadline:
            raise EngineDeadError(f"gcbench serve did not become ready within {_READY_SECONDS:g} s")
        time.sleep(_LOOK_SECONDS)
    said_ready = msgspec.json.decode(ready.read_bytes())
    front_end = psutil.Process(server.pid)
    processes = {"front end": front_end}
    (processes["engine core"],) = front_end.children()
    return Served(said_ready["url"], said_ready["model"], processes, errors)


def _last_words(errors: Path) -> str:
    said = errors.read_text(errors="replace").strip().splitlines()
    return said[-1].removeprefix("gcbench: ") if said else ""
