"""Threads and processes beside the one that is traced: what they execute no count has."""

import sys
import threading
from types import FrameType

_STARTS = frozenset(
    (
        "_thread.start_new_thread",
        "_thread.start_joinable_thread",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "subprocess.Popen",
    )
)
"""Audit events, each raised before what it names is there; 3.11 has none for a thread."""


class _Heard:
    """Hooks stay for good, so a process has one of each."""

    is_on = False
    number = 0


def num_started() -> int:
    """How many this process has started since the first call."""
    if not _Heard.is_on:
        _Heard.is_on = True
        sys.addaudithook(_hear)
        if sys.version_info < (3, 12):
            threading.setprofile(_begins)
    return _Heard.number


def num_other_threads() -> int:
    """Python threads that are there beside the one that asks."""
    return len(sys._current_frames()) - 1


def _hear(event: str, _: object) -> None:
    if event in _STARTS:
        _Heard.number += 1


def _begins(frame: FrameType, event: str, arg: object) -> None:
    """The first call of a thread that `threading` has started."""
    _Heard.number += 1
    sys.setprofile(None)
