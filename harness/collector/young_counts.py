"""How a process's count of young objects moved, as few bytes."""

import zlib
from array import array

import numpy as np

from engines.protocol import Int64Array


def packed(changes: "array[int]") -> bytes:
    """Changes of the count, an array of type "i", deflated."""
    return zlib.compress(changes.tobytes(), 1)


def unpacked(changes: bytes) -> Int64Array:
    """The same, ``[num_changes]``."""
    return np.frombuffer(zlib.decompress(changes), np.int32).astype(np.int64)
