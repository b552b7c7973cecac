"""Processes that already run, told to record from now on, and in the end no more."""

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from gcbench import probe
from harness.machine.interrupts import INTERRUPTS
from harness.probed.forwarded import taken_one_by_one
from harness.probed.identity import is_python
from harness.probed.run import POLL_SECONDS, look_once
from harness.probed.watch import RingWatch

_LETS_GO_SECONDS = 1.0
_TAKE = "__import__('os').unlink({order!r})\n"
_BEGIN = """
import sys
module = type(sys)({module!r})
try:
    with open({file!r}, "rb") as file:
        exec(compile(file.read(), {file!r}, "exec"), module.__dict__)
    sys.modules[{module!r}] = module  # so that it is found again
    module.stop = module.record_into({folder!r}, {long_ns})
except Exception:  # the program is not to suffer from it
    pass
"""
_END = """
import sys
module = sys.modules.pop({module!r}, None)
if module:
    module.stop()
"""


def watch_attached(
    pid: int,
    folder: Path,
    watching: Callable[[psutil.Process, Callable[..., str]], RingWatch],
    look: Callable[[RingWatch], object],
    long_ns: int = 0,
) -> tuple[int, RingWatch]:
    """Watch a process, those below it and their forks, until it ends or a signal comes.

    The status is 0, of a signal other than Ctrl-C its number, negative. ``watching`` is told of the
    process, and how to say why one is not watched. Raises ValueError where it cannot be attached
    to.
    """
    words = {"module": f"gcbench.probe of {folder.name}", "folder": str(folder)}
    begin = _BEGIN.format(file=probe.__file__, long_ns=long_ns, **words)
    failed: dict[int, str] = {}
    root, orders = _attached(pid, begin, failed)

    def why_not(process: psutil.Process, *_: object) -> str:
        since = "it is newer, or has run no Python code in its main thread since"
        return failed.get(process.pid, since)

    watch, status = watching(root, why_not), 0
    with taken_one_by_one():
        while _runs(root):
            look_once(watch, look)
            if came := signal.sigtimedwait(INTERRUPTS, POLL_SECONDS):
                status = 0 if came.si_signo == signal.SIGINT else -came.si_signo
                break
        for late in _let_go(orders, _END.format(**words)):
            watch.note(f"PID {late} lets go of the probe when its main thread runs Python next.")
    return status, watch


def _attached(
    pid: int, begin: str, failed: dict[int, str]
) -> tuple[psutil.Process, "list[_Order]"]:
    try:
        root = psutil.Process(pid)
        orders = [_Order(root, begin)]
    except psutil.Error as error:
        raise ValueError(f"--pid {pid}: no such process runs; look for it with pgrep") from error
    except ValueError as error:
        raise ValueError(f"--pid {pid}: {error}") from error
    for child in root.children(recursive=True):
        with suppress(psutil.Error):
            if is_python(child.exe()):
                try:
                    orders.append(_Order(child, begin))
                except ValueError as error:
                    failed[child.pid] = str(error)
    return root, orders


def _let_go(begun: "list[_Order]", end: str) -> list[int]:
    """Have all of them record no more; PIDs of those that have not done so yet."""
    ends = []
    for order in begun:
        if order.is_waiting:
            order.becomes("")
        elif _runs(order.process):
            with suppress(ValueError, psutil.Error):
                ends.append(_Order(order.process, end))
    until = time.monotonic() + _LETS_GO_SECONDS
    while any(each.is_waiting for each in ends) and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
    return [each.process.pid for each in ends if each.is_waiting]


class _Order:
    """Code that a process runs as soon as its main thread runs Python, in a file that it removes.

    Raises ValueError where it cannot be told, in words that follow "because".
    """

    def __init__(self, process: psutil.Process, code: str) -> None:
        self.process = process
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        if not hasattr(sys, "remote_exec"):
            raise ValueError(
                f"attaching takes CPython 3.14 or later, in it and for gcbench, which runs on "
                f"{version}; start the program under the probe: gcbench probe -- COMMAND"
            )
        if process.uids().effective != os.geteuid():
            raise ValueError("it runs as another user; run gcbench as that one")
        descriptor, name = tempfile.mkstemp(prefix="gcbench-attach-", suffix=".py")
        os.close(descriptor)
        self._path = Path(name)
        self.becomes(code)
        why_not = "it sees other files, as in a container; run gcbench in there"
        try:
            if Path(f"/proc/{process.pid}/root{name}").exists():
                sys.remote_exec(process.pid, name)
                return
        except (OSError, RuntimeError) as error:
            why_not = f"it is no CPython {version} that lets itself be attached to: {error}"
        self._path.unlink()
        raise ValueError(why_not)

    @property
    def is_waiting(self) -> bool:
        """Whether the process has not taken it yet; one that has ended never will."""
        if self._path.exists() and not _runs(self.process):
            self._path.unlink(missing_ok=True)
        return self._path.exists()

    def becomes(self, code: str) -> None:
        """Have it be that from now on."""
        self._path.write_text(_TAKE.format(order=str(self._path)) + code, "utf-8")


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
