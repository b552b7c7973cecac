"""What one process at a time may have: a lock on a file, gone with the process that holds it."""

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from errno import ENOLCK, EOPNOTSUPP
from pathlib import Path
from textwrap import shorten

_LONGEST_OWNER = 300
_LONGEST_COMMAND = 100


class HeldError(RuntimeError):
    """Another process holds it. ``owner``: which, since when, with what command and where."""

    def __init__(self, path: Path, owner: str) -> None:
        super().__init__(f"{owner} holds {path}")
        self.owner = owner


@contextmanager
def held(path: Path) -> Iterator[Callable[[str], None]]:
    """Hold ``path``, a file that stays when it is let go, whose last holder it names.

    What it gives adds words of that holder's, in the place of those it added before.

    On a file system without locks nobody holds anything. Raises HeldError where another process
    holds it, OSError where it cannot be opened.
    """
    descriptor = _open(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HeldError(path, _owner(descriptor)) from None
        except OSError as error:
            if error.errno not in (ENOLCK, EOPNOTSUPP):  # as some network file systems answer
                raise
        this = _this_process()

        def say(more: str) -> None:
            with suppress(OSError):  # on a full disk the lock holds all the same
                os.truncate(descriptor, os.pwrite(descriptor, f"{this}{more}".encode(), 0))

        say("")
        yield say
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileNotFoundError):
        # Not with O_CREAT: of another user's file in /tmp Linux refuses that.
        return os.open(path, flags)
    descriptor = os.open(path, flags | os.O_CREAT, 0o666)
    with suppress(PermissionError):  # another user has just made it
        os.fchmod(descriptor, 0o666)  # whatever the umask: whoever holds it next writes his name
    return descriptor


def _this_process() -> str:
    command = shorten(
        " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]), _LONGEST_COMMAND, placeholder=" …"
    )
    since = f"{datetime.now():%Y-%m-%d %H:%M}"
    return f"process {os.getpid()} since {since} ({command}) in {_folder()}"


def _folder() -> str:
    try:
        return shorten(str(Path.cwd()), _LONGEST_COMMAND, placeholder=" …")
    except FileNotFoundError:
        return "a folder that is gone"


def _owner(descriptor: int) -> str:
    """As it has written it, which may be anything: one line that a terminal can show."""
    said = os.pread(descriptor, 4 * _LONGEST_OWNER, 0).decode(errors="replace")
    shown = "".join(each for each in said if each.isprintable())
    if len(shown) > _LONGEST_OWNER:
        shown = f"{shown[:_LONGEST_OWNER]}…"
    return shown or "a process that has not said which it is"
