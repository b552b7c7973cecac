"""A file's memory without a descriptor: a server may have more processes than one may open files.

`mmap.mmap` keeps one for as long as the memory is there, before Python 3.13.
"""

import ctypes
import mmap
import os
import stat
import weakref
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_longlong,
)
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_FAILED = ctypes.c_void_p(-1).value


class SharedFile:
    """``size`` bytes that this process and others read and write.

    Raises OSError where the file cannot be opened, ValueError where it is none of that size.
    """

    def __init__(self, path: Path, size: int) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_size != size:
                raise ValueError("its gcbench is of another version; install this one there")
            protection = mmap.PROT_READ | mmap.PROT_WRITE
            at = _LIBC.mmap(None, size, protection, mmap.MAP_SHARED, descriptor, 0)
        finally:
            os.close(descriptor)
        if at == _FAILED:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
        self.memory = memoryview((ctypes.c_char * size).from_address(at)).cast("B")
        self._unmap = weakref.finalize(self, _LIBC.munmap, at, size)
        self._unmap.atexit = False  # others may still look at it then

    def close(self) -> None:
        """Give the memory back, which nobody may look at any more."""
        self._unmap()
