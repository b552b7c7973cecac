"""Run a command as it would run without the probe, and watch it until it has ended."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from gcbench import probe
from harness.probed.forwarded import FORWARDED, taken_one_by_one
from harness.probed.identity import START_UP
from harness.probed.watch import RingWatch

POLL_SECONDS = 0.05
"""How often rings are read. One has room for 1,024 collections, 20,000 a second."""
_SHARED_MEMORY = Path("/dev/shm")


def shared_memory() -> Path | None:
    """Where rings are best made; None where the usual temporary folder has to do."""
    return _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK | os.X_OK) else None


def probed_environment(
    folder: Path, environment: Mapping[str, str], long_ns: int = 0
) -> dict[str, str]:
    """An environment in which every Python from 3.8 on records into ``folder``, and explains
    pauses of ``long_ns`` and more, but for 0.
    """
    path = [str(START_UP), *filter(None, [environment.get("PYTHONPATH")])]
    return {
        **environment,
        probe.PROBE_VARIABLE: str(folder),
        probe.LONG_VARIABLE: str(long_ns),
        "PYTHONPATH": os.pathsep.join(path),
    }


def run_probed(
    command: Sequence[str],
    folder: Path,
    watching: Callable[[psutil.Process], RingWatch],
    look: Callable[[RingWatch], object],
    long_ns: int = 0,
) -> tuple[int, RingWatch]:
    """The command's status (of a signal negative) and all that was seen.

    It is in this process's group, with its standard streams. What kill(1) sends here is sent on;
    what a terminal sends, it sends to both. ``look`` is called after each poll. Whatever goes wrong
    in either, the command is waited for. Raises ValueError where there is no such command.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, there is no status
    with taken_one_by_one() as before:
        pid = _spawned(command, probed_environment(folder, os.environ, long_ns), before)
        watch = watching(psutil.Process(pid))
        look_once(watch, look)
        while (status := _reaped(pid)) is None:
            came = signal.sigtimedwait(FORWARDED, POLL_SECONDS)
            if came and came.si_code <= 0:  # above: from the kernel, so from the terminal
                with suppress(OSError):  # it has ended, or runs as another user
                    os.kill(pid, came.si_signo)
            look_once(watch, look)
    return status, watch


def look_once(watch: RingWatch, look: Callable[[RingWatch], object]) -> None:
    """Poll; whatever goes wrong is a note."""
    try:
        watch.poll()
        look(watch)
    except Exception as error:  # the program is not to suffer from it
        watch.note(f"Once the program was not looked at, because of {error!r}.")


def _spawned(command: Sequence[str], environment: Mapping[str, str], mask: set[int]) -> int:
    try:
        return os.posix_spawnp(
            command[0],
            list(command),
            environment,
            setsigmask=mask,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # which Python ignores
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ValueError(
            f"{command[0]!r} cannot be run: {why}; name a program behind --, as in gcbench probe "
            "-- python server.py"
        ) from error


def _reaped(pid: int) -> int | None:
    """Its status once it has ended. As PID 1 and as a subreaper this one has others' orphans, too,
    which nobody else waits for.
    """
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == pid:
            return os.waitstatus_to_exitcode(status)
        if not ended:
            return None
