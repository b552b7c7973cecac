"""An operation of a process at which something happens to it: it is killed, its disk is full.

    CRASH_POINT="gcbench kill rename 3 /tmp/runs" PYTHONPATH=tests/harness/crash_site python …

Operations are what a process does to files, the processes that it starts and the messages that it
sends. They are counted from 0. In this process `watch` counts them; in one that is started with
`environment` the folder ``crash_site`` does, as soon as its interpreter begins.
"""

import errno
import os
import signal
import stat
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

HERE = Path(__file__).parent
CHANGES = ("write", "mkdir", "rename", "remove", "rmdir")
KINDS = (*CHANGES, "spawn", "message")
_NEEDS_ROOM = ("write", "mkdir", "rename")
_EVENTS = {
    "open": "write",
    "os.mkdir": "mkdir",
    "os.rename": "rename",
    "os.remove": "remove",
    "os.rmdir": "rmdir",
    "subprocess.Popen": "spawn",
}
_SENDS = ("write", "send", "sendall", "sendmsg")
_VARIABLE = "CRASH_POINT"


class Operation(NamedTuple):
    """``what``: the path, the command, or the function that sends."""

    kind: str
    what: Any


Act = Callable[[int, Operation], None]


def kill(_: Operation) -> None:
    """As the kernel does where there is no memory left."""
    os.kill(os.getpid(), signal.SIGKILL)


def terminate(_: Operation) -> None:
    """As a supervisor does."""
    os.kill(os.getpid(), signal.SIGTERM)


def interrupt(_: Operation) -> None:
    """Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)


def refuse_room(operation: Operation) -> None:
    """A full disk: what needs none of it goes on."""
    if operation.kind in _NEEDS_ROOM:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


ACTIONS = {"kill": kill, "term": terminate, "interrupt": interrupt, "full": refuse_room}


def at(number: int, action: Callable[[Operation], None]) -> Act:
    """Do it at that operation; a disk that is full stays so."""
    lasts = action is refuse_room

    def act(current: int, operation: Operation) -> None:
        if current == number or (lasts and current > number):
            action(operation)

    return act


def watch(act: Act, kinds: Collection[str] = CHANGES, folder: str = "") -> list[str]:
    """Call ``act`` before each operation of these kinds from now on; the kinds of those so far.

    ``folder``: of operations on files only those below it.
    """
    seen: list[str] = []

    def operate(operation: Operation) -> None:
        seen.append(operation.kind)
        act(len(seen) - 1, operation)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        kind = _EVENTS.get(event, "")
        if kind not in kinds:
            return
        if event == "open" and not _is_written(arguments[2]):
            return
        if kind in CHANGES and folder and not str(arguments[0]).startswith(f"{folder}/"):
            return
        operate(Operation(kind, arguments[1] if kind == "spawn" else arguments[0]))

    def profile(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and called.__name__ in _SENDS and _is_sent(called):
            operate(Operation("message", called.__name__))

    if set(kinds) - {"message"}:
        sys.addaudithook(hook)
    if "message" in kinds:
        sys.setprofile(profile)  # no audit event tells of a pipe that is written to
    return seen


def environment(role: str, action: str, kind: str, number: int, folder: Path) -> dict[str, str]:
    """Variables for a process that is to meet a crash point, or one that it starts.

    ``role``: a word of its command line. `operations` tells how many it came to.
    """
    paths = (str(HERE / "crash_site"), str(HERE), os.environ.get("PYTHONPATH", ""))
    return {
        _VARIABLE: f"{role} {action} {kind} {number} {folder}",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }


def operations(folder: Path) -> int:
    """How many operations the process came to that was to meet a crash point in ``folder``."""
    counted = folder.with_name(f"{folder.name}.operations")
    return counted.stat().st_size if counted.exists() else 0


def obey_environment() -> None:
    """Meet the crash point that the environment asks for, if it is this process's."""
    asked = os.environ.get(_VARIABLE, "")
    if not asked:
        return
    role, action, kind, number, folder = asked.split(" ", 4)
    if role not in sys.orig_argv:
        return
    log = os.open(f"{folder}.operations", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC)
    meet = at(int(number), ACTIONS[action])

    def act(current: int, operation: Operation) -> None:
        os.write(log, b".")  # at once: who is killed says no more
        meet(current, operation)

    watch(act, [kind])


def _is_written(flags: object) -> bool:
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


def _is_sent(called: Any) -> bool:
    """Whether what is called writes to a pipe or a socket."""
    owner = getattr(called, "__self__", None)
    if not hasattr(owner, "fileno"):
        return False
    try:
        mode = os.fstat(owner.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
