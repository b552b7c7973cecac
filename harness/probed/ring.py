"""A process's ring, read while the process writes it."""

import mmap
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engines.protocol import Int64Array
from gcbench import probe

GENERATIONS = 3
START_NS, DURATION_NS, CPU_NS, GENERATION, COLLECTED = range(probe.RECORD)
"""Columns of what `Ring.take` gives."""


class Lost(NamedTuple):
    """Collections that found the ring full, by generation; int64 arrays ``[3]``."""

    collections: Int64Array
    pause_ns: Int64Array
    longest_ns: Int64Array
    cpu_ns: Int64Array
    collected: Int64Array


class Ring:
    """One file of shared memory, as `gcbench.probe` writes it. One reader at a time.

    Raises ValueError where the file is of another version, in words that follow "because".
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            self._memory: mmap.mmap | bytes = mmap.mmap(descriptor, 0)
        finally:
            os.close(descriptor)
        self._words = np.frombuffer(self._memory, dtype=np.int64)
        if len(self._memory) != probe.SIZE or self._words[probe.VERSION] != probe.MAGIC:
            raise ValueError("its gcbench is of another version; install this one there")
        self._seen = self._taken = 0
        self.pid = int(self._words[probe.PID])
        self.forked_from = int(self._words[probe.FORKED_FROM])
        self.python = self._text(probe.PYTHON, probe.COMMAND)
        self.command = self._text(probe.COMMAND, probe.TEXT_END).split("\0")

    @property
    def name(self) -> str:
        """What `multiprocessing` calls the process; "" where it is none of its."""
        name = self._text(probe.NAME, probe.PYTHON)
        return "" if name == "MainProcess" else name

    def take(self, *, has_ended: bool = False) -> Int64Array:
        """Records since the last call, int64 ``[num_records, 5]``.

        Only those that were there at the call before, too, unless the process ``has_ended``:
        nothing orders another core's writes but time.
        """
        written = int(self._words[probe.WRITTEN])
        until = written if has_ended else self._seen
        places = np.arange(self._taken, until) % probe.CAPACITY
        records: Int64Array = self._words[probe.HEADER :].reshape(-1, probe.RECORD)[places]
        self._seen, self._taken = written, until
        self._words[probe.READ] = until
        return records

    def lost(self) -> Lost:
        """Those that are in no record."""
        places = (probe.LOST, probe.LOST_NS, probe.LOST_LONGEST_NS, probe.LOST_CPU_NS,
                  probe.LOST_COLLECTED)  # fmt: skip
        return Lost(*(self._words[at : at + GENERATIONS].copy() for at in places))

    def forget(self) -> None:
        """Of a process that has ended: remove the file and its memory, keep all but records."""
        self.path.unlink(missing_ok=True)
        self._memory = self._memory[: 8 * probe.HEADER]
        self._words = np.frombuffer(self._memory, dtype=np.int64)

    def _text(self, begin: int, end: int) -> str:
        return self._memory[begin:end].rstrip(b"\0").decode(errors="replace")
