"""Threads and processes beside the one that is traced: what they execute no count has."""

import os
import sys
import threading
from types import FrameType


class _Begun:
    """Hooks stay for good, so a process has one of each. No audit hook: it would run, and leave
    objects, whenever a function is traced.
    """

    is_watched = False
    number = 0


def num_begun() -> int:
    """How many threads of `threading` and forks have begun since the first call."""
    if not _Begun.is_watched:
        _Begun.is_watched = True
        threading.setprofile(_thread_begins)
        os.register_at_fork(before=_fork_begins)
    return _Begun.number


def num_threads() -> int:
    """Python threads that are there beside the one that asks."""
    return len(sys._current_frames()) - 1


def num_others() -> int:
    """These and the child processes."""
    import psutil  # no part of the heap of other trials

    return num_threads() + len(psutil.Process().children())


def _thread_begins(frame: FrameType, event: str, arg: object) -> None:
    """Its first call, in the thread itself."""
    _Begun.number += 1
    sys.setprofile(None)


def _fork_begins() -> None:
    _Begun.number += 1
