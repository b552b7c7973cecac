"""Where an object was allocated, as `tracemalloc` knows it: its raw frames, the innermost first."""

import sys
from collections.abc import Callable

Frames = tuple[tuple[str, int], ...]
"""File and line of each frame."""

allocation_trace: Callable[[object], Frames | None]
"""The frames of an object's allocation, None where it was not traced."""

if sys.version_info >= (3, 12):
    # What `tracemalloc.get_object_traceback` calls, without the objects that it wraps around it.
    from _tracemalloc import _get_object_traceback

    allocation_trace = _get_object_traceback
else:
    import ctypes

    _GC_HEAD, _DICT_POINTERS = 16, 16
    _MANAGED_DICT = 1 << 4  # Py_TPFLAGS_MANAGED_DICT
    _get = ctypes.pythonapi._PyTraceMalloc_GetTraceback
    _get.restype = ctypes.py_object
    _get.argtypes = (ctypes.c_uint, ctypes.c_size_t)

    def allocation_trace(each: object) -> Frames | None:
        """`tracemalloc.get_object_traceback` of 3.11 looks for an instance with a ``__dict__`` 16
        bytes behind its block, and finds nothing.
        """
        has_dict = type(each).__flags__ & _MANAGED_DICT
        size = _GC_HEAD + _DICT_POINTERS if has_dict else _GC_HEAD
        frames: Frames | None = _get(0, id(each) - size)
        return frames
