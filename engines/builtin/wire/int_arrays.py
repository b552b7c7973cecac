"""int32 arrays in few bytes: a progression by three numbers, others as narrow as they go."""

import numpy as np

from engines.builtin.wire import WireError
from engines.protocol import Int32Array

Packed = tuple[int, int, int] | bytes
"""(length, first, step) of a progression, which a constant is too; or a byte for the bytes of a
value, then the values, little-endian."""

_WIDTHS: dict[int, str] = {1: "<u1", 2: "<u2", 4: "<i4"}


def pack(array: Int32Array) -> Packed:
    """An array of one dimension."""
    count = len(array)
    if count == 0:
        return (0, 0, 0)
    first = int(array[0])
    step = int(array[1]) - first if count > 1 else 0
    # Nearly every array that is no progression is told by its last element.
    if int(array[-1]) == first + step * (count - 1) and (
        count < 3 or bool((array[1:] - array[:-1] == step).all())
    ):
        return (count, first, step)
    width = 4
    if int(array.min()) >= 0:
        highest = int(array.max())
        width = 1 if highest < 1 << 8 else 2 if highest < 1 << 16 else 4
    return bytes((width,)) + array.astype(_WIDTHS[width], copy=False).tobytes()


def unpack(packed: Packed) -> Int32Array:
    """It again, int32, memory of its own. Raises WireError for what `pack` does not make."""
    if isinstance(packed, tuple):
        count, first, step = packed
        if step == 0:
            return np.full(count, first, np.int32)
        return (first + step * np.arange(count)).astype(np.int32)
    dtype = _WIDTHS.get(packed[0]) if packed else None
    if dtype is None or (len(packed) - 1) % packed[0]:
        raise WireError("an array that does not begin with the width of its integers")
    return np.frombuffer(packed, dtype, offset=1).astype(np.int32)
