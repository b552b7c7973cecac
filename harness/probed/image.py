"""Which image a process runs: what an exec, a fork and a reuse of its PID each make another."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_ENDED = (b"Z", b"X")


class Image(NamedTuple):
    """As a ring's header has it: the inode of its PID namespace, its PID there, and of
    `/proc/PID/stat` the moment of its start and the place of its stack, which each exec moves.

    0 is for unknown. Nothing of it changes while the image runs.
    """

    namespace: int
    pid: int
    started: int
    stack: int

    def find(self) -> int:
        """Its PID in this process's namespace; 0 where it ended in another. Raises OSError."""
        if self.namespace in (0, _own_namespace()):
            return self.pid
        return next((pid for pid in _pids() if self._is(pid)), 0)

    def runs_as(self, pid: int) -> bool:
        """Whether that process still runs it. Raises OSError where that cannot be told."""
        found = image_of(pid)
        return (
            found is not None
            and self.started in (0, found.started)
            and (self.stack == found.stack or not self.stack or not found.stack)
        )

    def _is(self, pid: int) -> bool:
        found = image_of(pid)
        if found is None or found.started != self.started or found.stack != self.stack:
            return False
        # A fork in the same clock tick has all of it but the number.
        return _number_inside(pid) == self.pid


class Shown(NamedTuple):
    """Of a process that runs, as in `Image`."""

    started: int
    stack: int


def image_of(pid: int) -> Shown | None:
    """None where no such process runs. Raises OSError where that cannot be told."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123 -- it is often
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in _ENDED else Shown(int(fields[19]), int(fields[25]))


def _own_namespace() -> int:
    return (_PROC / "self/ns/pid").stat().st_ino


def _pids() -> Iterator[int]:
    return (int(each.name) for each in _PROC.iterdir() if each.name.isdigit())


def _number_inside(pid: int) -> int:
    """Its PID in the innermost namespace that it is in; 0 once it has ended."""
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[-1]) for line in lines if line.startswith("NSpid:")), 0)
