"""Shared memory with names, which stays when those who made it are killed."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

_FOLDER = "/dev/shm/"


@contextmanager
def freed(group: int) -> Iterator[None]:
    """End a process group inside; afterwards the names are free that only it has used."""
    members = {pid for pid in psutil.pids() if _group(pid) == group}
    used = set(_mapped(members))
    yield
    if used:
        for name in used - set(_mapped(set(psutil.pids()) - members)):
            with suppress(OSError):  # its maker has removed it, or it is another user's
                Path(name).unlink()


def _group(pid: int) -> int:
    with suppress(ProcessLookupError):
        return os.getpgid(pid)
    return 0


def _mapped(pids: Iterable[int]) -> Iterator[str]:
    for pid in pids:
        with suppress(OSError):  # gone, or another user's
            for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
                name = line.partition(_FOLDER)[2]
                if name and not name.endswith("(deleted)"):
                    yield _FOLDER + name
