"""What `gcbench probe --log` has written, as arrays or rows; the program may still run."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from errno import ENOENT
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.protocol import Int64Array
from harness.files import StoreError
from harness.probed.log_format import (
    Frame,
    Head,
    LoggedReading,
    decode_frame,
    ended_pieces,
    frames_of,
    read_head,
)
from workloads.files.regular_file import open_regular

_WRITES_ONE = "gcbench probe --log FILE -- COMMAND writes one"


class Collections(NamedTuple):
    """Collections of all processes in the order of the log; arrays ``[num_collections]``.

    All that ended from ``began_ns`` to ``read_ns`` are here, but for what ``notes`` say and for
    those in ``lost``, int64 ``[num_readings, 2]``: a moment, and how many until then have no
    moment. ``names`` and ``pythons``, their versions, by PID.
    """

    boot_id: str
    began_ns: int
    read_ns: int
    names: dict[int, str]
    pythons: dict[int, str]
    lost: Int64Array
    pid: NDArray[np.signedinteger[Any]]
    start_ns: Int64Array
    duration_ns: Int64Array
    cpu_ns: Int64Array
    generation: NDArray[np.signedinteger[Any]]
    notes: tuple[str, ...] = ()

    def lost_between(self, begin_ns: int, end_ns: int) -> int:
        """How many had no moment by the first reading after the end, less those before."""
        if not len(self.lost):
            return 0
        moments, counts = self.lost.T
        before = int(np.searchsorted(moments, begin_ns, "right")) - 1
        after = min(int(np.searchsorted(moments, end_ns)), len(moments) - 1)
        return int(counts[after]) - (int(counts[before]) if before >= 0 else 0)


_KINDS: tuple[type[np.signedinteger[Any]], ...] = (np.int32, np.int64, np.int64, np.int64, np.int8)
"""Of the last five columns of `Collections`."""
_WORDS = ("start_ns", "duration_ns", "cpu_ns", "generation", "collected")


class _Piece(NamedTuple):
    path: Path
    file: BinaryIO
    head: Head
    begin: int
    end: int


class LogReader:
    """A log that is read once, however often it is asked how far it goes. Raises StoreError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._first: Head | None = None
        self._piece = self._at = 0
        self._names: dict[int, str] = {}
        self._pythons: dict[int, str] = {}
        self._readings: list[tuple[int, int]] = []
        self._columns = [[np.zeros(0, kind)] for kind in _KINDS]
        self._notes: list[str] = []
        """Of what will not be read any more."""

    def read(self) -> Collections:
        """As far as it goes by now."""
        with _pieces(self.path) as pieces:
            self._first = first = self._first or pieces[0].head
            for piece in pieces:
                if piece.head.piece >= self._piece:
                    torn = self._take(piece)
                    if torn and piece is not pieces[-1]:
                        self._notes.append(torn)
        for parts in self._columns:  # one after another: there is room for all of them once
            if len(parts) > 1:
                parts[:] = [np.concatenate(parts)]
        pid, start_ns, duration_ns, cpu_ns, generation = (part for (part,) in self._columns)
        return Collections(
            first.boot_id,
            first.began_ns,
            self._readings[-1][0] if self._readings else 0,
            dict(self._names),
            dict(self._pythons),
            np.array(self._readings, np.int64).reshape(-1, 2),
            pid,
            start_ns,
            duration_ns,
            cpu_ns,
            generation,
            (*self._notes, *filter(None, [torn])),
        )

    def _take(self, piece: _Piece) -> str:
        """All that is new in it; of what is there and cannot be read, a sentence."""
        if piece.head.piece > self._piece:
            if 0 < self._piece < piece.head.piece - 1:
                self._notes.append(f"Pieces of {self.path} were removed before they were read.")
            self._piece, self._at = piece.head.piece, piece.begin
        most = sum(each.collections for each in frames_of(piece.file, self._at, piece.end))
        fresh = [np.empty(most, kind) for kind in _KINDS]
        filled = 0
        for frame, reading, words in _readings(piece, self._at):
            until = filled + frame.collections
            values = np.repeat(*_pids(reading)), *words[: len(_KINDS) - 1]
            for column, value in zip(fresh, values, strict=True):
                column[filled:until] = value
            filled, self._at = until, frame.end
            self._names |= {each.pid: each.name for each in reading.processes}
            self._pythons |= {each.pid: each.python for each in reading.processes}
            self._has_read(reading)
        for parts, column in zip(self._columns, fresh, strict=True):
            if filled:
                parts.append(column[:filled])
        return _torn(piece, self._at)

    def _has_read(self, reading: LoggedReading) -> None:
        """Of readings with the same count in a row the first and the last are enough."""
        entry = reading.read_ns, reading.lost
        if [count for _, count in self._readings[-2:]] == [reading.lost] * 2:
            self._readings.pop()
        if reading.read_ns:
            self._readings.append(entry)


def rows(path: Path) -> Iterator[list[object]]:
    """A log as a table, a collection a row, below the names of the columns. Raises StoreError."""
    with _pieces(path) as pieces:
        yield ["pid", "name", "role", "python", *_WORDS]
        for piece in pieces:
            for _, reading, words in _readings(piece, piece.begin):
                values = iter(words.T.tolist())
                for each in reading.processes:
                    about = [each.pid, each.name, each.role, each.python]
                    yield from ([*about, *next(values)] for _ in range(each.collections))


def is_log(path: Path) -> bool:
    """Whether a file begins as a log does."""
    try:
        with open_regular(path) as file:
            read_head(file)
    except (OSError, ValueError):
        return False
    return True


@contextmanager
def _pieces(path: Path) -> Iterator[list[_Piece]]:
    """All pieces of a log that are there, in their order. Raises StoreError."""
    with ExitStack() as opened:
        try:
            yield _opened(path, opened)
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error


def _opened(path: Path, opened: ExitStack) -> list[_Piece]:
    """The newest is opened first: renamed since it is the same file, and the others were before."""
    found = []
    try:
        with suppress(FileNotFoundError):  # there is none in the moment after it was renamed
            found.append(_piece(path, opened))
    except ValueError as error:
        raise StoreError(f"{path} is no log of collections ({error}); {_WRITES_ONE}") from error
    for each in reversed(ended_pieces(path.absolute()).values()):
        with suppress(OSError, ValueError):  # it was removed, or is something else
            piece = _piece(each, opened)
            if not found or found[-1].head.log_ns == piece.head.log_ns:
                found.append(piece)
    if not found:
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
    return list({each.head.piece: each for each in reversed(found)}.values())


def _piece(path: Path, opened: ExitStack) -> _Piece:
    file = opened.enter_context(open_regular(path))
    head, begin = read_head(file), file.tell()
    return _Piece(path, file, head, begin, file.seek(0, SEEK_END))


def _readings(piece: _Piece, begin: int) -> Iterator[tuple[Frame, LoggedReading, Int64Array]]:
    """The frames behind a place, up to one that is damaged."""
    for frame in frames_of(piece.file, begin, piece.end):
        piece.file.seek(frame.begin)
        try:
            found = decode_frame(piece.file.read(frame.end - frame.begin), frame.collections)
        except ValueError:
            return
        yield frame, *found


def _pids(reading: LoggedReading) -> tuple[list[int], list[int]]:
    processes = reading.processes
    return [each.pid for each in processes], [each.collections for each in processes]


def _torn(piece: _Piece, at: int) -> str:
    if at == piece.end:
        return ""
    return (
        f"The last {piece.end - at:,} bytes of {piece.path} are half written or damaged, and were "
        "left out."
    )
