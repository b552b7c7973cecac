"""Every collection, written while the processes run, in pieces of bounded size.

``FILE`` is the newest piece; an ended one is ``FILE.1``, ``FILE.2``, … in the order in which they
were written. The oldest goes where there are too many.
"""

import time
from contextlib import nullcontext, suppress
from errno import EEXIST
from pathlib import Path
from types import TracebackType
from typing import Self

from engines.protocol import Int64Array
from harness.files import StoreError, writing
from harness.probed.log_format import (
    MOST_COLLECTIONS,
    PROBE_SCHEMA,
    Head,
    LoggedProcess,
    encode_frame,
    ended_piece,
    ended_pieces,
    head_line,
    read_head,
)
from harness.probed.watched import Watched
from workloads.files.regular_file import open_regular
from workloads.files.whole_file import replacing

PIECE_BYTES = 32 << 20
MOST_PIECES = 32
_SAY_READ_NS = 250_000_000
_OPTION = "--log FILE"


class CollectionLog:
    """A log, made anew, in pieces that end at ``piece_bytes``. Raises StoreError where it cannot be
    written. Killed, it lacks what came in its last quarter of a second.
    """

    def __init__(self, path: Path, boot_id: str, piece_bytes: int = PIECE_BYTES) -> None:
        self._path, self._boot_id, self._piece_bytes = path.resolve(), boot_id, piece_bytes
        self.failure = ""
        """Why nothing is written any more; "" where it still is."""
        self._read_ns = self._log_ns = time.monotonic_ns()
        self._said = (0, 0)
        self._processes: list[LoggedProcess] = []
        self._records: list[Int64Array] = []
        self._piece = self._pending = 0
        with writing(path, _OPTION):
            self._is_divided = not path.exists() or path.is_file()
            if self._is_divided:
                _remove_pieces(self._path)
            self._begin_piece(self._log_ns)

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
        """Keep a process's new records for the next frame."""
        if self._pending + len(records) > MOST_COLLECTIONS:
            self._write()
        about = (watched.pid, watched.name, watched.role, watched.ring.python)
        self._processes.append(LoggedProcess(*about, len(records)))
        self._records.append(records)
        self._pending += len(records)

    def has_read(self, lost: int, *, is_end: bool = False) -> None:
        """Rings have been read. Of what came since the reading before, some may be missing."""
        now, read_ns = time.monotonic_ns(), self._read_ns
        self._read_ns = now
        if now - self._said[0] >= _SAY_READ_NS or is_end:
            self._said = (now if is_end else read_ns, lost)
            self._write()

    def _write(self) -> None:
        frame = encode_frame(*self._said, self._processes, self._records)
        self._processes, self._records, self._pending = [], [], 0
        if self.failure:
            return
        try:
            with writing(self._path, _OPTION):
                self._file.write(frame)
                self._file.flush()
                if self._is_divided and self._file.tell() >= self._piece_bytes:
                    self._end_piece()
        except StoreError as error:
            self.failure = str(error)

    def _end_piece(self) -> None:
        ended = ended_piece(self._path, self._piece)
        if ended.exists():
            raise FileExistsError(EEXIST, f"{ended} is there already")
        self._file.close()
        self._path.rename(ended)
        with suppress(FileNotFoundError):
            ended_piece(self._path, self._piece + 1 - MOST_PIECES).unlink()
        self._begin_piece(self._said[0])

    def _begin_piece(self, began_ns: int) -> None:
        self._piece += 1
        head = (PROBE_SCHEMA, "CLOCK_MONOTONIC", self._boot_id, self._log_ns, self._piece, began_ns)
        with replacing(self._path) if self._is_divided else nullcontext(self._path) as made:
            self._file = made.open("wb")
            self._file.write(head_line(Head(*head)))
            self._file.flush()


def _remove_pieces(path: Path) -> None:
    """Those of the log that was there before."""
    for each in ended_pieces(path).values():
        with suppress(ValueError), open_regular(each) as file:
            read_head(file)
            each.unlink()
