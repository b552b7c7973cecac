"""The blocks in Python's allocator, less those that depend on where things lie in memory."""

import sys


def allocated_blocks() -> int:
    """Blocks of up to 512 bytes, each an object or a part of one.

    CPython's cache of methods keeps the name of each attribute that C code has looked up, in a
    place that its address decides. NumPy makes such names anew with every call, so how many are
    kept is an accident: the cache is emptied first.
    """
    sys._clear_type_cache()
    return sys.getallocatedblocks()
