"""The blocks in Python's allocator, less those that chance keeps there."""

import gc
import sys

from msgspec import _core

_VISITS = (_core,) * 10
if sys.version_info >= (3, 13):
    _clear_caches = sys._clear_internal_caches
else:
    _clear_caches = sys._clear_type_cache


def empty_caches() -> None:
    """Those of which it is chance what they keep.

    CPython's cache of methods keeps the name of each attribute that C code has looked up, in a
    place that its address decides. NumPy makes such names anew with every call, so how many are
    kept is an accident. msgspec keeps up to 512 short strings that it has decoded, and empties
    that when the collector, which comes by three times in a full pass, visits it the tenth time.
    """
    _clear_caches()
    gc.get_referents(*_VISITS)


def allocated_blocks() -> int:
    """Blocks of up to 512 bytes, each an object or a part of one, with these caches emptied."""
    empty_caches()
    return sys.getallocatedblocks()
