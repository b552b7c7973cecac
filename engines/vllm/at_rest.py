"""Whether the threads beside the main ones, here and in the processes started here, have work left.

In an engine core and in its reader these are the ones that messages go through.
"""

from contextlib import suppress
from pathlib import Path

import psutil


def is_at_rest() -> bool:
    """Whether all of them sleep; True where the system does not say.

    One that waits for a core, is stopped, or waits for a disk may yet have something to say.
    """
    here = psutil.Process()
    for process in (here, *here.children(recursive=True)):
        for thread in Path(f"/proc/{process.pid}/task").glob("*"):
            with suppress(OSError):  # it has ended
                # Its name, in brackets, may have anything in it.
                state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "S" and thread.name != str(process.pid):
                    return False
    return True
