"""Sends a signal to a command, or to a process that it has started, once it is time."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
from surroundings import Surroundings

SIGNALS = ("KILL", "TERM", "INT", "HUP", "STOP")
"""One that is stopped is let go on."""
_HANDLED = ("TERM", "INT", "HUP")
_STOPPED_SECONDS = 0.3

BY_SIGNAL = {
    "": {0},
    "STOP": {0},
    "KILL": {-signal.SIGKILL},
    "INT": {130, -signal.SIGINT},
    "TERM": {130, -signal.SIGTERM},
    "HUP": {130, -signal.SIGHUP},
}
"""How a command may end that gets a signal: by itself, or while it has no handler of its own."""


def shown(name: str) -> str:
    """What a table calls it."""
    return "STOP+CONT" if name == "STOP" else name


def send_after(
    process: "subprocess.Popen[bytes]",
    name: str,
    moment: float,
    place: Surroundings,
    victim: str = "",
) -> bool:
    """Send it once it is time and there is somebody to get it; False where all had ended.

    Not while Python starts, which ends as any program does that has no handler yet.
    """
    deadline = time.monotonic() + moment
    found: list[int] = []
    while time.monotonic() < deadline or not found:
        if process.poll() is not None:
            return False
        time.sleep(0.01)
        found = _victims(victim, place) if victim else [process.pid]
        if name in _HANDLED and not victim and not _handles(process.pid):
            found = []
    return _send(found[0], name)


def _handles(pid: int) -> bool:
    """Whether gcbench has its handlers there: Python has none of SIGTERM by itself."""
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        caught = next(line for line in lines if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False


def _send(pid: int, name: str) -> bool:
    try:
        os.kill(pid, getattr(signal, f"SIG{name}"))
        if name == "STOP":
            time.sleep(_STOPPED_SECONDS)
            os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return False
    return True


def _victims(victim: str, place: Surroundings) -> list[int]:
    """Processes of an attempt by a word of their command line."""
    found = []
    for process in place.processes():
        with suppress(psutil.Error):
            if victim in process.cmdline():
                found.append(process.pid)
    return found
