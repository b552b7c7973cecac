"""All processes of a command, watched through their rings until it has ended."""

import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

import numpy as np
import psutil

from engines.protocol import Int64Array
from harness.probed.identity import command_of, is_python, name_of, why_not_probed
from harness.probed.result import GenerationTotals, NotProbed, ProbedProcess
from harness.probed.ring import COLLECTED, CPU_NS, DURATION_NS, GENERATION, GENERATIONS, Ring

BOUNDS_SECONDS = (0.0001, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Of the classes of pauses that are counted; the last class has no bound."""
_LOOK_AROUND_SECONDS = 0.5
_BEGINS_SECONDS = 0.5
_WAIT_SECONDS = 0.01
_FILE = re.compile(r"(\d{1,9})-\d+\.(?:ring|(\d{1,4}))")
"""A process's ring, or the error for which it has none."""
_BOUNDS_NS = np.array(BOUNDS_SECONDS) * 1e9


class Watched:
    """One process's ring and what was in it."""

    def __init__(self, ring: Ring, role: str) -> None:
        self.ring, self.role = ring, role
        self.lock = Lock()
        """Held where records are taken: who asks from another thread sees all of one or none."""
        self._command = ring.command
        self.ended_at: float | None = None
        self.sizes = np.zeros((GENERATIONS, len(BOUNDS_SECONDS) + 1), np.int64)
        """Recorded pauses by generation and class."""
        self._totals = np.zeros((5, GENERATIONS), np.int64)
        self.is_replaced = False
        """Whether another program runs as this process by now, by exec."""
        self._process: psutil.Process | None = None
        self._is_gone = False
        self._find()

    @property
    def name(self) -> str:
        """As it has called itself last."""
        return name_of(self._command, self.ring.name)

    def take(self, *, has_ended: bool = False) -> Int64Array:
        """New records, which are counted."""
        with self.lock:
            records = self.ring.take(has_ended=has_ended)
            if len(records):
                generation, duration = records[:, GENERATION], records[:, DURATION_NS]
                count, pause, longest, cpu, collected = self._totals
                np.add.at(count, generation, 1)
                np.add.at(pause, generation, duration)
                np.maximum.at(longest, generation, duration)
                np.add.at(cpu, generation, records[:, CPU_NS])
                np.add.at(collected, generation, records[:, COLLECTED])
                np.add.at(self.sizes, (generation, np.searchsorted(_BOUNDS_NS, duration)), 1)
            return records

    def look(self) -> bool:
        """Whether it still runs; takes over the command that it shows by now."""
        process = self._process or self._find()
        with suppress(psutil.AccessDenied, OSError):  # which says nothing of its end
            try:
                if self._is_gone or (process and not process.is_running()):
                    return False
                if process and process.status() == psutil.STATUS_ZOMBIE:
                    return False
                if process and not self.is_replaced:
                    self._command = process.cmdline() or self._command
            except psutil.NoSuchProcess:
                return False
        return True

    def _find(self) -> psutil.Process | None:
        with suppress(psutil.AccessDenied, OSError):  # no descriptor may be left just now
            try:
                self._process = psutil.Process(self.ring.pid)
            except psutil.NoSuchProcess:
                self._is_gone = True
        return self._process

    def described(self) -> ProbedProcess:
        """All about it by now."""
        lost, unseen, ring = self.ring.lost(), self.ring.unseen(), self.ring
        count, pause, longest, cpu, collected = self._totals
        return ProbedProcess(
            pid=ring.pid,
            name=self.name,
            role=self.role,
            forked_from=ring.forked_from,
            command=ring.command,
            python=ring.python,
            generations=[
                GenerationTotals(
                    generation=each,
                    collections=int(count[each] + lost.collections[each]),
                    pause_seconds=int(pause[each] + lost.pause_ns[each]) / 1e9,
                    longest_pause_seconds=int(max(longest[each], lost.longest_ns[each])) / 1e9,
                    cpu_seconds=int(cpu[each] + lost.cpu_ns[each]) / 1e9,
                    objects_freed=int(collected[each] + lost.collected[each]),
                    lost=int(lost.collections[each]),
                    unseen=int(unseen[each]),
                )
                for each in range(GENERATIONS)
            ],
        )


class RingWatch:
    """The rings in a folder and the processes below ``root``, which ``command`` has started.

    ``record`` is told of each process's new records. What cannot be read is in ``notes``, and all
    else is watched on.
    """

    def __init__(
        self,
        folder: Path,
        root: psutil.Process,
        command: Sequence[str],
        record: Callable[[Watched, Int64Array], object] = lambda *_: None,
    ) -> None:
        self._folder, self._root, self._record = folder, root, record
        self._command = command
        self._by_file: dict[str, Watched] = {}
        self._probed = set[int]()
        self._errors: dict[int, int] = {}
        self._reasons: dict[int, NotProbed] = {}
        self._unread: dict[str, str] = {}
        self._notes: list[str] = []
        self._look_again_at = 0.0

    @property
    def processes(self) -> list[Watched]:
        """Those with a ring, in the order in which they came."""
        return list(self._by_file.values())

    @property
    def notes(self) -> list[str]:
        """What was not watched, a sentence each."""
        return [*self._notes, *self._unread.values()]

    def note(self, sentence: str) -> None:
        """Say it at the end, once."""
        if sentence not in self._notes:
            self._notes.append(sentence)

    def poll(self) -> None:
        """Take what is new; now and then, see who is there."""
        self._find_rings()
        for each in self.processes:
            if each.ended_at is None:
                self._take(each)
        if time.monotonic() >= self._look_again_at:
            self._look_again_at = time.monotonic() + _LOOK_AROUND_SECONDS
            self.look_around()

    def look_around(self) -> None:
        """End those that have ended, and find the interpreters that have no ring."""
        for each in self.processes:
            if each.ended_at is None and not each.look():
                self._end(each)
        with suppress(psutil.Error, OSError):
            for process in [self._root, *self._root.children(recursive=True)]:
                self._look_at(process)

    def finish(self, seconds: float = 0.5) -> list[int]:
        """Take what is left; the PIDs of those that still run, after ``seconds`` at most."""
        deadline = time.monotonic() + seconds
        while True:
            self._find_rings()
            still = {e.ring.pid for e in self.processes if e.ended_at is None and e.look()}
            if not still or time.monotonic() > deadline:
                break
            time.sleep(_WAIT_SECONDS)
        for each in self.processes:
            if each.ended_at is None:
                self._end(each)
        return sorted(still)

    def not_probed(self) -> list[NotProbed]:
        """Interpreters that were seen without a ring, and why.

        Where none was seen, the command is one if it is called so: it may have ended at once.
        """
        if not self._probed and not self._reasons and is_python(self._command[0]):
            self._note(self._root)
        return [each for pid, each in self._reasons.items() if pid not in self._probed]

    def _find_rings(self) -> None:
        try:
            paths = sorted(self._folder.iterdir(), key=lambda path: path.name.split("-")[-1])
        except OSError as error:
            self.note(
                f"From some moment on no new process was watched, because {self._folder} cannot be "
                f"read: {error.strerror}; keep the program from removing it."
            )
            return
        for path in paths:
            found = _FILE.fullmatch(path.name)
            if found and found[2]:
                self._has_no_ring(int(found[1]), int(found[2]))
            elif found and path.name not in self._by_file:
                self._add(int(found[1]), path)
            elif not found and path.suffix == ".ring":
                self.note(f"{path} is no ring, so it was not read.")

    def _has_no_ring(self, pid: int, error: int) -> None:
        if pid in self._errors:
            return
        self._errors[pid] = error
        try:
            self._note(psutil.Process(pid))
        except (psutil.Error, OSError):
            why = f"no ring could be made in {self._folder}: {os.strerror(error)}"
            self._reasons[pid] = NotProbed(pid, "python", why)

    def _add(self, pid: int, path: Path) -> None:
        try:
            ring = Ring(path)
        except ValueError as error:
            with suppress(OSError):
                path.unlink()
            self._reasons[pid] = NotProbed(pid, "python", str(error))
            return
        except OSError as error:  # it is tried again: there may be no descriptor left just now
            self._unread[path.name] = (
                f"What PID {pid} collected is not known, because {path} cannot be read: "
                f"{error.strerror}."
            )
            return
        self._unread.pop(path.name, None)
        for each in self.processes:
            each.is_replaced |= each.ring.pid == ring.pid
        self._by_file[path.name] = Watched(ring, self._role(ring))
        self._probed.add(ring.pid)

    def _role(self, ring: Ring) -> str:
        if ring.pid == self._root.pid:
            return "command"
        if ring.forked_from:
            return "fork"
        return "multiprocessing" if any("multiprocessing" in w for w in ring.command) else "program"

    def _take(self, watched: Watched, *, has_ended: bool = False) -> None:
        try:
            records = watched.take(has_ended=has_ended)
            if len(records):
                self._record(watched, records)
        except Exception as error:  # whatever is wrong with one, all others are watched on
            watched.ended_at = time.monotonic()
            self.note(
                f"{watched.name} ({watched.ring.pid}) was watched no longer, because {error}."
            )

    def _end(self, watched: Watched) -> None:
        self._take(watched, has_ended=True)
        watched.ended_at = time.monotonic()
        watched.ring.forget()

    def _look_at(self, process: psutil.Process) -> None:
        """An interpreter is given a moment to begin; the command may have ended after it."""
        if process.pid in self._reasons or process.pid in self._probed:
            return
        with suppress(psutil.Error, OSError):
            is_young = time.time() - process.create_time() < _BEGINS_SECONDS
            if is_python(process.exe()) and (not is_young or process == self._root):
                self._note(process)

    def _note(self, process: psutil.Process) -> None:
        command = command_of(process) or (self._command if process == self._root else [])
        error = self._errors.get(process.pid)
        reason = why_not_probed(process, self._folder, command, error)
        self._reasons[process.pid] = NotProbed(process.pid, name_of(command), reason)
