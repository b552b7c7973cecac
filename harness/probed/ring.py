"""A process's ring, read while the process writes it."""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engines.protocol import Int64Array
from gcbench import probe
from harness.probed.image import Image
from harness.probed.shared_file import SharedFile

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

    Raises ValueError where the file is of another version, in words that follow "because", and
    OSError where it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: SharedFile | None = SharedFile(path, probe.SIZE)
        self._memory: memoryview | bytes = self._file.memory
        self._words = np.frombuffer(self._memory, dtype=np.int64)
        if self._words[probe.VERSION] != probe.MAGIC:
            raise ValueError("its gcbench is of another version; install this one there")
        self._seen = self._taken = 0
        self.image = Image(*self._words[probe.IMAGE : probe.IMAGE + len(Image._fields)].tolist())
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
        if not self._seen <= written <= self._taken + probe.CAPACITY:
            raise ValueError(f"its ring says {written} collections after {self._seen}")
        until = written if has_ended else self._seen
        places = np.arange(self._taken, until) % probe.CAPACITY
        records: Int64Array = self._words[probe.HEADER :].reshape(-1, probe.RECORD)[places]
        self._seen, self._taken = written, until
        self._words[probe.READ] = until
        generations = records[:, GENERATION]
        if ((generations < 0) | (generations >= GENERATIONS)).any():
            raise ValueError("its ring has collections of no generation")
        return records

    def unseen(self) -> Int64Array:
        """Collections that the probe was not called for, by generation, int64 ``[3]``.

        As `gc.get_stats` had them when the process ended; 0 where it did not come to that.
        """
        return self._words[probe.UNSEEN : probe.UNSEEN + GENERATIONS].copy()

    def lost(self) -> Lost:
        """Those that are in no record."""
        places = (
            probe.LOST,
            probe.LOST_NS,
            probe.LOST_LONGEST_NS,
            probe.LOST_CPU_NS,
            probe.LOST_COLLECTED,
        )
        return Lost(*(self._words[at : at + GENERATIONS].copy() for at in places))

    def forget(self) -> None:
        """Of a process that has ended: remove the file and its memory, keep all but records."""
        self._memory = bytes(self._memory[: 8 * probe.HEADER])
        self._words = np.frombuffer(self._memory, dtype=np.int64)
        if self._file is not None:
            self._file.close()
            self._file = None
        with suppress(OSError):  # its folder may be gone
            self.path.unlink()

    def _text(self, begin: int, end: int) -> str:
        return bytes(self._memory[begin:end]).rstrip(b"\0").decode(errors="replace")
