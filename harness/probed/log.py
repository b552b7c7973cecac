"""Every collection as a line of JSON, written while the processes run.

The first line has the schema and the clock. A line with ``name`` introduces a process, and comes
again when its name has changed. One with ``read_ns`` says that every collection that ended before
that moment is in the lines above it, but for ``lost`` so far whose moments are not known. Every
other line is a collection of the process with that ``pid``.
"""

import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from engines.protocol import Int64Array
from harness.files import StoreError, writing
from harness.probed.watched import Watched

PROBE_SCHEMA = "gcbench.collections/1"
_SAY_READ_NS = 250_000_000


class CollectionLog:
    """A file of lines, made anew. Raises StoreError where it cannot be written."""

    def __init__(self, path: Path, boot_id: str) -> None:
        self._path = path
        self._names: dict[int, str] = {}
        self.failure = ""
        """Why nothing is written any more; "" where it still is."""
        self._read_ns = time.monotonic_ns()
        self._said_ns = 0
        with writing(path, "--log FILE"):
            self._file = path.open("wb")
        began = {"clock": "CLOCK_MONOTONIC", "began_ns": self._read_ns, "boot_id": boot_id}
        self._say({"schema": PROBE_SCHEMA, **began})
        self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with suppress(OSError):  # what it could not write it has said before
            self._file.close()

    def record(self, watched: Watched, records: Int64Array) -> None:
        """Write a process's new records, unless that has failed before."""
        if self.failure:
            return
        try:
            self._record(watched, records)
        except StoreError as error:
            self.failure = str(error)

    def has_read(self, lost: int, *, is_end: bool = False) -> None:
        """Rings have been read. Of what came since the reading before, some may be missing."""
        now, read_ns = time.monotonic_ns(), self._read_ns
        self._read_ns = now
        if self.failure or (now - self._said_ns < _SAY_READ_NS and not is_end):
            return
        self._said_ns = now
        try:
            self._say({"read_ns": now if is_end else read_ns, "lost": lost})
            self._flush()
        except StoreError as error:
            self.failure = str(error)

    def _record(self, watched: Watched, records: Int64Array) -> None:
        if self._names.get(watched.pid) != watched.name:
            self._names[watched.pid] = watched.name
            about = {"name": watched.name, "role": watched.role, "python": watched.ring.python}
            self._say({"pid": watched.pid, **about})
        names = ("start_ns", "duration_ns", "cpu_ns", "generation", "collected")
        for values in records.tolist():
            self._say({"pid": watched.pid, **dict(zip(names, values, strict=True))})
        self._flush()

    def _say(self, line: dict[str, object]) -> None:
        with writing(self._path, "--log FILE"):
            self._file.write(msgspec.json.encode(line) + b"\n")

    def _flush(self) -> None:
        with writing(self._path, "--log FILE"):
            self._file.flush()
