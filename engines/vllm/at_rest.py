"""Whether the threads of some processes have work left, their main ones aside.

In an engine core and in its reader these are the ones that messages go through.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def is_at_rest(pids: Iterable[int]) -> bool:
    """Whether all of them sleep; True where the system does not say.

    One that waits for a core, is stopped, or waits for a disk may yet have something to say.
    """
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").glob("*"):
            with suppress(OSError):  # it has ended
                # Its name, in brackets, may have anything in it.
                state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "S" and thread.name != str(pid):
                    return False
    return True
