"""A hook of each process's own, which shares nothing with gcbench: its collections, as records.

A record is five int64: the image, its PID as it sees it, two moments on CLOCK_MONOTONIC, and the
generation. Of an image that begins the second moment is its PID namespace instead, and the
generation how it came: `STARTED` by an interpreter, to which `TO_BE_KILLED` may happen at any
moment, or `FORKED` from another image.
"""

import gc
import os
import struct
import time

STARTED, FORKED, TO_BE_KILLED = -1, -2, -3
RECORD = struct.Struct("<5q")
FOLDER_VARIABLE = "SOAK_TRUTH"


def tell_the_truth(how: int) -> None:
    """From now on, in this process and all that it forks, into the file that the environment names.

    Each record is one write to a file that is open beforehand: no buffer is lost where a process is
    killed, and no descriptor is needed where none is left.
    """
    path = os.environ[FOLDER_VARIABLE]
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    clock, write, pack, getpid = time.monotonic_ns, os.write, RECORD.pack, os.getpid
    namespace = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116 -- its import collects
    image, began = 0, 0

    def begin(how: int) -> None:
        nonlocal image
        image = clock()  # and nothing before the record that could collect
        write(file, pack(image, getpid(), image, namespace, how))

    def hook(phase: str, info: "dict[str, int]") -> None:
        nonlocal began
        if phase == "start":
            began = clock()
        else:
            write(file, pack(image, getpid(), began, clock(), info["generation"]))

    begin(how)
    os.register_at_fork(after_in_child=lambda: begin(FORKED))
    gc.callbacks.insert(len(gc.callbacks) // 2, hook)  # inside the probe's two, if it is there
