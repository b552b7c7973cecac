"""What `gcbench probe --log` has written, as arrays; the program may still run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.protocol import Int64Array
from harness.files import StoreError
from harness.probed.log import PROBE_SCHEMA
from workloads.files.regular_file import open_regular

_MOST_BYTES = 32 << 30
_BLOCK_BYTES = 1 << 20
"""Decoded at once; a line has a few hundred."""
_WRITES_ONE = "gcbench probe --log FILE -- COMMAND writes one"


class Collections(NamedTuple):
    """Collections of all processes in the order of the file; arrays ``[num_collections]``.

    All that ended from ``began_ns`` to ``read_ns`` are here, but for those in ``lost``, int64
    ``[num_readings, 2]``: a moment, and how many until then have no moment. ``names`` and
    ``pythons``, their versions, by PID.
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

    def lost_between(self, begin_ns: int, end_ns: int) -> int:
        """How many had no moment by the first reading after the end, less those before."""
        if not len(self.lost):
            return 0
        moments, counts = self.lost.T
        before = int(np.searchsorted(moments, begin_ns, "right")) - 1
        after = min(int(np.searchsorted(moments, end_ns)), len(moments) - 1)
        return int(counts[after]) - (int(counts[before]) if before >= 0 else 0)


class _Line(msgspec.Struct, gc=False):
    schema: str = ""
    boot_id: str = ""
    began_ns: int = 0
    read_ns: int = 0
    lost: int = 0
    pid: int = 0
    name: str = ""
    python: str = ""
    start_ns: int = 0
    duration_ns: int = 0
    cpu_ns: int = 0
    generation: int = 0


_KINDS: tuple[type[np.signedinteger[Any]], ...] = (np.int32, np.int64, np.int64, np.int64, np.int8)
"""Of the last five of `Collections`."""


class LogReader:
    """A log that is read once, however often it is asked how far it goes. Raises StoreError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = 0
        self._decoder = msgspec.json.Decoder(_Line)
        self._first: _Line | None = None
        self._names: dict[int, str] = {}
        self._pythons: dict[int, str] = {}
        self._readings: list[tuple[int, int]] = []
        self._columns = [[np.zeros(0, kind)] for kind in _KINDS]

    def read(self) -> Collections:
        """As far as it goes by now."""
        try:
            with open_regular(self.path, _MOST_BYTES) as file:
                file.seek(self._at)
                for block in self._blocks(file):
                    self._take(block)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror or error}") from error
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError) as error:
            raise StoreError(
                f"{self.path} is no log of collections ({error}); {_WRITES_ONE}"
            ) from error
        first = self._first or _Line()
        if first.schema != PROBE_SCHEMA:
            raise StoreError(
                f"{self.path} is no log of collections: its first line does not say "
                f"{PROBE_SCHEMA}; {_WRITES_ONE}"
            )
        for pieces in self._columns:  # one after another: there is room for all of them once
            if len(pieces) > 1:
                pieces[:] = [np.concatenate(pieces)]
        return Collections(
            first.boot_id,
            first.began_ns,
            self._readings[-1][0] if self._readings else 0,
            dict(self._names),
            dict(self._pythons),
            np.array(self._readings, np.int64).reshape(-1, 2),
            *(piece for (piece,) in self._columns),
        )

    def _blocks(self, file: BinaryIO) -> Iterator[bytes]:
        """Whole lines; the last one may be half written."""
        while block := file.read(_BLOCK_BYTES):
            whole = block[: block.rfind(b"\n") + 1]
            if not whole:
                if len(block) == _BLOCK_BYTES:
                    raise msgspec.DecodeError("a line has no end")
                return
            self._at += len(whole)
            file.seek(self._at)
            yield whole

    def _take(self, block: bytes) -> None:
        lines = self._decoder.decode_lines(block)
        if self._first is None:
            self._first = lines[0]
        self._names |= {each.pid: each.name for each in lines if each.name}
        self._pythons |= {each.pid: each.python for each in lines if each.python}
        self._readings += [(each.read_ns, each.lost) for each in lines if each.read_ns]
        records = [
            (each.pid, each.start_ns, each.duration_ns, each.cpu_ns, each.generation)
            for each in lines
            if each.start_ns
        ]
        if records:
            for pieces, values, kind in zip(
                self._columns, zip(*records, strict=True), _KINDS, strict=True
            ):
                pieces.append(np.array(values, kind))
