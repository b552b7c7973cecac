"""How far client processes are, in shared memory: numbers that they write and the parent reads."""

import mmap
import os
import tempfile
from typing import NamedTuple

import numpy as np

from engines.openai.client import Client
from engines.openai.outcome import Outcome
from engines.protocol import Int32Array

_WIDTH = 6
_SENT, _ENDED, _COMPLETED, _TTFT, _PACED, _TPOT = range(_WIDTH)


class Snapshot(NamedTuple):
    """All processes together. Means of latencies are rough: of first bytes and of asked lengths."""

    sent: int
    ended: int
    completed: int
    ttft_seconds: float
    tpot_seconds: float


class Progress:
    """A row for each process; eight bytes at an address of eight are written at once."""

    def __init__(self, num_processes: int) -> None:
        self.descriptor = _shared_memory(8 * _WIDTH * num_processes)
        self._memory = mmap.mmap(self.descriptor, 8 * _WIDTH * num_processes)

    def read(self) -> Snapshot:
        """How far they are now."""
        rows = np.frombuffer(bytes(self._memory), np.int64).reshape(-1, _WIDTH)
        sent, ended, completed, ttft, paced, tpot = rows.sum(axis=0).tolist()
        return Snapshot(
            max(sent, ended),
            ended,
            completed,
            ttft / max(1, completed) / 1e9,
            tpot / max(1, paced) / 1e9,
        )

    def close(self) -> None:
        """Let go of the memory."""
        self._memory.close()
        os.close(self.descriptor)


class Reporter:
    """Writes a process's own row. A `Watch`; ``asked``: the most tokens of each request."""

    def __init__(self, descriptor: int, process: int, client: Client, asked: Int32Array) -> None:
        memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        self._row = memoryview(memory).cast("q")[process * _WIDTH : (process + 1) * _WIDTH]
        self._client = client
        self._asked: list[int] = asked.tolist()
        self._num_ended = 0

    def look(self) -> None:
        """How many are under way."""
        self._row[_SENT] = self._num_ended + self._client.num_in_flight

    def ended(self, request: int) -> None:
        """Sums, so that who looks can make means."""
        row, client = self._row, self._client
        self._num_ended += 1
        row[_ENDED] = self._num_ended
        first = int(client.first_ns[request])
        if not first or client.ended[request] != Outcome.COMPLETED:
            return
        row[_COMPLETED] += 1
        row[_TTFT] += first - int(client.sent_ns[request])
        if self._asked[request] > 1:
            row[_PACED] += 1
            row[_TPOT] += (int(client.ended_ns[request]) - first) // (self._asked[request] - 1)


def _shared_memory(num_bytes: int) -> int:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("load-progress")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, num_bytes)
    return descriptor
