"""Processes that end with the one that started them.

Engines have the same function: a trial may run another commit's engines, whose modules the harness
cannot count on.
"""

import ctypes
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask Linux to kill this process when its parent dies; elsewhere nothing.

    A parent that died before the call goes unnoticed: being a child of process 1 does not tell,
    in a container that may be the parent.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
