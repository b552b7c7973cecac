"""The bytes of a log of collections: files that hold frames, each whole by itself.

A file is a piece of a log. It begins with `Head` as a line of JSON, and goes on with frames: their
length in bytes and the number of their collections, each a little-endian uint32, and a
`LoggedReading` as MessagePack, compressed by zlib. So a frame that is cut off or damaged is told
from one that is not, and takes none before it along.
"""

import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import numpy as np

from engines.protocol import Int64Array
from gcbench.probe import RECORD

PROBE_SCHEMA = "gcbench.collections/1"
MOST_COLLECTIONS = 1 << 16
"""Of one frame."""
_SIZES = struct.Struct("<II")
_WORDS = 8 * RECORD
_MOST_BYTES = MOST_COLLECTIONS * _WORDS + (16 << 20)
_MOST_BYTES_OF_HEAD = 4096
_COMPRESSION = 1


class Head(msgspec.Struct, frozen=True):
    """The first line of a piece. ``piece``: the how manieth it is, from 1 on.

    ``log_ns``: when its log began; ``began_ns``: every later collection is in it or behind it.
    """

    schema: str
    clock: str
    boot_id: str
    log_ns: int
    piece: int
    began_ns: int


class LoggedProcess(msgspec.Struct, frozen=True, array_like=True):
    """Whose the next so many collections of a frame are."""

    pid: int
    name: str
    role: str
    python: str
    collections: int


class LoggedReading(msgspec.Struct, frozen=True, array_like=True):
    """A frame. Every collection that ended before ``read_ns`` is in it or before it, but for
    ``lost`` so far whose moments are not known.

    ``words``: of all its collections int64 ``[5, num_collections]`` as in `Ring.take`, each start
    less the one before it, and of these the first byte of each, the second of each, and so on.
    """

    read_ns: int
    lost: int
    processes: list[LoggedProcess]
    words: bytes


class Frame(NamedTuple):
    """Where in a file a frame is, in bytes, and how many collections it has."""

    begin: int
    end: int
    collections: int


def encode_frame(
    read_ns: int, lost: int, processes: list[LoggedProcess], records: list[Int64Array]
) -> bytes:
    """A frame of at most `MOST_COLLECTIONS`; ``records``: of each process ``[num, 5]``."""
    columns = np.concatenate([np.zeros((0, RECORD), np.int64), *records]).T.copy()
    columns[0] = np.diff(columns[0], prepend=0)
    number = columns.shape[1]
    words = columns.view(np.uint8).reshape(RECORD, number, 8).transpose(0, 2, 1).tobytes()
    content = msgspec.msgpack.encode(LoggedReading(read_ns, lost, processes, words))
    packed = zlib.compress(content, _COMPRESSION)
    return _SIZES.pack(len(packed), number) + packed


def decode_frame(packed: bytes, collections: int) -> tuple[LoggedReading, Int64Array]:
    """A frame without its sizes, and its collections ``[5, num_collections]``.

    Raises ValueError where it is not as `encode_frame` made it.
    """
    try:
        inflate = zlib.decompressobj()
        content = inflate.decompress(packed, _MOST_BYTES)
        reading = msgspec.msgpack.decode(content, type=LoggedReading)
    except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from error
    counts = [each.collections for each in reading.processes]
    if not inflate.eof or min(counts, default=0) < 0 or sum(counts) != collections:
        raise ValueError("its sizes contradict each other")
    if len(reading.words) != collections * _WORDS:
        raise ValueError("its sizes contradict each other")
    shuffled = np.ndarray((RECORD, 8, collections), np.uint8, reading.words)
    columns = np.empty((RECORD, collections), np.int64)
    columns.view(np.uint8).reshape(RECORD, collections, 8)[:] = shuffled.transpose(0, 2, 1)
    np.cumsum(columns[0], out=columns[0])
    return reading, columns


def head_line(head: Head) -> bytes:
    """The first line of a piece."""
    return msgspec.json.encode(head) + b"\n"


def read_head(file: BinaryIO) -> Head:
    """A file's first line, behind which it then stands. Raises ValueError where it is no log's."""
    try:
        head = msgspec.json.decode(file.readline(_MOST_BYTES_OF_HEAD), type=Head)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if head.schema != PROBE_SCHEMA:
        raise ValueError(f"its first line does not say {PROBE_SCHEMA}")
    return head


def frames_of(file: BinaryIO, begin: int, end: int) -> Iterator[Frame]:
    """The frames that lie whole between two places of a file."""
    while begin + _SIZES.size <= end:
        file.seek(begin)
        length, collections = _SIZES.unpack(file.read(_SIZES.size))
        frame = Frame(begin + _SIZES.size, begin + _SIZES.size + length, collections)
        if frame.end > end or collections > MOST_COLLECTIONS:
            return
        yield frame
        begin = frame.end


def ended_pieces(path: Path) -> dict[int, Path]:
    """What is named as the pieces that a log in ``path`` has ended, by number, in their order."""
    name = re.compile(re.escape(path.name) + r"\.(\d{1,9})")
    found = ((name.fullmatch(each.name), each) for each in path.parent.iterdir())
    return dict(sorted((int(match[1]), each) for match, each in found if match))


def ended_piece(path: Path, piece: int) -> Path:
    """The name that a piece has once the next has begun."""
    return path.with_name(f"{path.name}.{piece}")
