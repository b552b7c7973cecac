"""Requests that come when they are due, whatever the engine does: another process stamps them.

A server's clients are outside of it. A client between the steps would send in clumps; a thread of
the engine's process would wait for the GIL, and a full collection would hold it back together with
the step, which hides the very wait that is to be seen.
"""

import mmap
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.deadline import wait_until
from harness.trial import sender_process
from harness.trial.arrivals import nanoseconds

_LEAD_NS = 1_000_000
"""From the opening to the first moment that counts: as long as the word may take to the sender."""


class Sender:
    """`Arrivals` by `time.perf_counter_ns`, a process of its own from the first to the last.

    The client reads stamps out of shared memory, a number a request: no lock, no thread, no object.
    """

    def __init__(self, arrival_seconds: NDArray[Any]) -> None:
        count = len(arrival_seconds)
        descriptor = _shared_memory(16 * count)
        memory = mmap.mmap(descriptor, 16 * count)
        due_ns = nanoseconds(arrival_seconds)
        np.frombuffer(memory, np.int64)[count:] = due_ns
        self._due_ns: list[int] = due_ns.tolist()
        # 0 until it is sent; eight bytes at an address of eight are written at once.
        self._sent_ns = memoryview(memory).cast("q")[:count]
        self._opened_ns = 0
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", sender_process.__name__, str(descriptor), str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(descriptor,),
            bufsize=0,
        )
        os.close(descriptor)
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            self.close()
            raise RuntimeError("the process that sends the requests could not start")

    def open(self) -> int:
        """A moment from now, so that the first request is not late."""
        self._opened_ns = time.perf_counter_ns() + _LEAD_NS
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended already: `wait_for` sees that
            self._process.stdin.write(b"%d\n" % self._opened_ns)
        return self._opened_ns

    def arrived(self, index: int, now_ns: int) -> int:
        """When the process sent it, if it was before that."""
        sent_ns = self._sent_ns[index]
        return sent_ns if sent_ns <= now_ns else 0

    def wait_for(self, index: int) -> None:
        """Wait until it is due, then for its stamp. Raises RuntimeError where none will come."""
        wait_until(self._opened_ns + self._due_ns[index])
        while not self._sent_ns[index]:
            if self._process.poll() is not None and not self._sent_ns[index]:
                raise RuntimeError("the process that sends the requests has ended too early")

    def close(self) -> None:
        """End the process; safe to call twice."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


def _shared_memory(num_bytes: int) -> int:
    """Descriptor of memory that a child can map."""
    if sys.platform == "linux":
        # No disk behind it, whose writing back would hold up a stamp.
        descriptor = os.memfd_create("arrivals")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, num_bytes)
    return descriptor
