"""Callgrind, which counts a process's machine instructions: how it is asked, what it writes."""

import ctypes
import mmap
import os
import platform
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

_ASKS = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db c3")
"""Of x86-64, a function that asks valgrind what its argument points to: the instructions that
valgrind.h has for it, which do nothing without valgrind.
"""
_DUMP, _START, _STOP = (0x43540000 + request for request in (0, 4, 5))
"""Requests of callgrind.h."""

_CALLS = re.compile(r"^calls=.*\n.*\n", re.MULTILINE)
"""What a function that is called takes, which stands at itself, too."""


class CallgrindError(ValueError):
    """Nothing can be counted by callgrind here."""


def check_callgrind() -> None:
    """Raises CallgrindError where it cannot be run."""
    if platform.machine() != "x86_64":
        raise CallgrindError(
            "instructions are counted on x86_64 alone, and this machine is "
            f"{platform.machine()}; leave --instructions out"
        )
    if shutil.which("valgrind") is None:
        raise CallgrindError(
            "there is no valgrind on PATH, which counts instructions; install it (apt-get install "
            "valgrind), or leave --instructions out"
        )


class Callgrind:
    """That which runs this process, if it does; without it nothing happens.

    Raises CallgrindError where it cannot be asked.
    """

    def __init__(self) -> None:
        check_callgrind()  # elsewhere the code below would be none
        self._code = mmap.mmap(
            -1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        )
        self._code.write(_ASKS)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._code))
        self._ask = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
        self._start, self._dump, self._stop = (
            (ctypes.c_size_t * 6)(request) for request in (_START, _DUMP, _STOP)
        )

    def start(self) -> None:
        """Count from now on."""
        self._ask(self._start)

    def stop(self) -> None:
        """Write down what has been counted, and count no more."""
        self._ask(self._dump)
        self._ask(self._stop)


def read_dump() -> dict[tuple[str, str], int]:
    """What this process's first dump says, as `parse_dump`. Raises ValueError without one."""
    path = Path(tempfile.gettempdir(), f"callgrind.{os.getpid()}.1")
    try:
        return parse_dump(path.read_text())
    except FileNotFoundError:
        raise ValueError(f"callgrind has not written {path}; is it run by valgrind?") from None


def parse_dump(text: str) -> dict[tuple[str, str], int]:
    """Own instructions by function and library, of a dump without compression."""
    found: Counter[tuple[str, str]] = Counter()
    for function, count in _lines(_CALLS.sub("", text)):
        found[function] += count
    return found


def _lines(text: str) -> Iterator[tuple[tuple[str, str], int]]:
    """Each line's instructions, with the function and library that they are of."""
    name = library = ""
    for line in text.splitlines():
        what, _, said = line.partition("=")
        if what == "ob":
            library = said.rpartition("/")[2]
        elif what == "fn":
            name = said.partition("'")[0]  # of a recursion
        elif line[:1].isdigit():
            yield (name, library), int(line.split()[1])
