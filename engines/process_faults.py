"""What is said of a process of an engine that has ended or is stopped."""

import signal

import psutil

from engines.protocol import EngineDeadError


def has_ended(what: str, pid: int, code: int) -> EngineDeadError:
    """What to raise for one with this exit code, a negative signal as `subprocess` has it."""
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    return EngineDeadError(f"the {what} process (pid {pid}) {how}")


def refuse_stopped(what: str, pid: int) -> None:
    """Raise EngineDeadError for one that is stopped, of which nothing will come any more.

    One that cannot be looked at, as where no descriptor is left for ``/proc``, is not stopped.
    """
    try:
        status = psutil.Process(pid).status()
    except (OSError, psutil.Error):
        return
    if status == psutil.STATUS_STOPPED:
        raise EngineDeadError(
            f"the {what} process (pid {pid}) is stopped; whoever sent it SIGSTOP must not while it "
            "is measured"
        )
