"""All processes of a command, watched through their rings until it has ended."""

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from engines.protocol import Int64Array
from harness.probed.ended import EndedImages
from harness.probed.identity import command_of, is_python, name_of, why_not_probed
from harness.probed.image import image_of
from harness.probed.long_pauses import LongPauses
from harness.probed.result import NotProbed, ProbedProcess
from harness.probed.ring import Ring
from harness.probed.series import CounterSeries
from harness.probed.watched import Watched

_LOOK_AROUND_SECONDS = 0.5
_LOOKING_SHARE = 0.01
"""Of a core, at most, however many processes the machine has."""
_BEGINS_SECONDS = 0.5
_WAIT_SECONDS = 0.01
_YOUNGEST = 8
_MOST_NAMED = 256
"""Notes and interpreters without the probe that are named; of others there is a count."""
_FILE = re.compile(r"(\d{1,9})-\d+\.(?:ring|(\d{1,4}))")
"""A process's ring, or the error for which it has none."""
_LONG = re.compile(r"(\d{1,9})-\d+\.long")


class RingWatch:
    """The rings in a folder and the processes below ``root``, which ``command`` has started.

    ``record`` is told of each image's new records, ``series`` of all sums, ``long_pauses`` of those
    that processes explain, where any do; ``why_not`` says why an interpreter has no ring. Whatever
    goes wrong with one ring, file or process is in ``notes``, and all else is watched on. What it
    keeps has a bound, however many come and go.
    """

    def __init__(
        self,
        folder: Path,
        root: psutil.Process,
        command: Sequence[str],
        record: Callable[[Watched, Int64Array], object] = lambda *_: None,
        series: CounterSeries | None = None,
        long_pauses: LongPauses | None = None,
        why_not: Callable[..., str] = why_not_probed,
    ) -> None:
        self._folder, self._root, self._record = folder, root, record
        self._command = command
        self._series = series or CounterSeries()
        self._running: dict[str, Watched] = {}
        self._ended = EndedImages()
        self._number = self._lost_before = 0
        self._reasons: dict[int, NotProbed] = {}
        self._had_no_ring = set[int]()
        self._more_not_probed = 0
        self._unread: dict[str, str] = {}
        self._notes = Counter[str]()
        self._look_again_at = 0.0
        self._long_pauses, self._why_not = long_pauses, why_not

    @property
    def running(self) -> list[Watched]:
        """Images that have not ended, in the order in which they came."""
        return list(self._running.values())

    @property
    def lost(self) -> int:
        """Collections so far whose moment is not known."""
        return self._lost_before + sum(each.lost for each in self._running.values())

    def processes(self) -> list[ProbedProcess]:
        """All images in the order in which they came, then those that are added up."""
        found = self._ended.by_number()
        found += [(each.number, each.described()) for each in self._running.values()]
        return [image for _, image in sorted(found, key=lambda each: each[0])] + (
            self._ended.folded()
        )

    @property
    def notes(self) -> list[str]:
        """What was not watched, a sentence each."""
        found = self._notes + Counter(list(self._unread.values())[:_MOST_NAMED])
        return [
            each if times == 1 else f"{each[:-1]} ({times:,} times)."
            for each, times in found.items()
        ]

    def note(self, sentence: str) -> None:
        """Say it at the end, once, and how often it was."""
        if sentence not in self._notes and len(self._notes) >= _MOST_NAMED:
            sentence = "More went wrong than is named here."
        self._notes[sentence] += 1

    def poll(self) -> None:
        """Take what is new; now and then, see who is there."""
        self._find_rings()
        for file, each in list(self._running.items()):
            self._take(file, each)
        if time.monotonic() >= self._look_again_at:
            began = time.thread_time()
            self.look_around()
            pause = (time.thread_time() - began) / _LOOKING_SHARE
            self._look_again_at = time.monotonic() + max(_LOOK_AROUND_SECONDS, pause)

    def look_around(self) -> None:
        """End those that have ended, and find the interpreters that have no ring."""
        for file, each in list(self._running.items()):
            if each.runs():
                each.take_command()
            else:
                self._end(file, each)
        known = {each.pid for each in self._running.values()}
        stacks = {each.ring.image.stack for each in self._running.values()}
        with suppress(psutil.Error, OSError):
            for process in [self._root, *self._root.children(recursive=True)]:
                if process.pid not in known:
                    self._look_at(process, stacks)

    def finish(self, seconds: float = 0.5) -> list[int]:
        """Take what is left; the PIDs of those that still run, after ``seconds`` at most."""
        deadline = time.monotonic() + seconds
        while True:
            self._find_rings()
            still = {each.pid for each in self._running.values() if each.runs()}
            if not still or time.monotonic() > deadline:
                break
            time.sleep(_WAIT_SECONDS)
        for file, each in list(self._running.items()):
            self._end(file, each)
        return sorted(still)

    def not_probed(self) -> list[NotProbed]:
        """Interpreters that were seen without a ring, and why.

        Where none was seen, the command is one if it is called so: it may have ended at once.
        """
        if not self._number and not self._reasons and is_python(self._command[0]):
            self._note(self._root)
        if self._more_not_probed:
            self.note(f"{self._more_not_probed:,} more interpreters had no probe.")
        return list(self._reasons.values())

    def _find_rings(self) -> None:
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 -- twenty times a second
        except OSError as error:
            self.note(
                f"From some moment on no new process was watched, because {self._folder} cannot be "
                f"read: {error.strerror}; keep the program from removing it."
            )
            return
        new = sorted(set(names) - self._running.keys(), key=lambda name: name.split("-")[-1])
        if new:  # whoever comes may have the places of the youngest, which live shortest
            for file, each in list(self._running.items())[-2 * len(new) - _YOUNGEST :]:
                if not each.runs():
                    self._end(file, each)
        for name in new:
            path, found = self._folder / name, _FILE.fullmatch(name)
            if found and found[2]:
                self._has_no_ring(int(found[1]), int(found[2]), path)
            elif found:
                self._add(int(found[1]), path)
            elif path.suffix == ".ring":
                self._unread[name] = f"{path} is no ring, so it was not read."
        for name in self._unread.keys() - set(names):  # its process has taken it away
            self.note(self._unread.pop(name))
        if self._long_pauses:
            known = {each.ring.image.pid: each for each in self._running.values()}
            for name in new:
                if (told := _LONG.fullmatch(name)) and (pid := int(told[1])) in known:
                    self._take_long(self._long_pauses, self._folder / name, known[pid])

    def _take_long(self, pauses: LongPauses, path: Path, whose: Watched) -> None:
        try:
            pauses.take(path, whose)
        except (OSError, ValueError) as error:
            self.note(f"A long pause is not explained, because of {error!r}.")

    def _has_no_ring(self, pid: int, error: int, path: Path) -> None:
        with suppress(OSError):
            path.unlink()
        try:
            self._note(psutil.Process(pid), error)
        except (psutil.Error, OSError):
            why = f"no ring could be made in {self._folder}: {os.strerror(error)}"
            self._name(NotProbed(pid, "python", why))
        if pid in self._reasons:
            self._had_no_ring.add(pid)

    def _add(self, pid: int, path: Path) -> None:
        try:
            ring = Ring(path)
            self._number += 1
            watched = Watched(ring, self._number, self._root.pid, self._series)
        except ValueError as error:
            with suppress(OSError):
                path.unlink()
            self._name(NotProbed(pid, "python", str(error)))
            return
        except OSError as error:  # it is tried again: there may be no descriptor left just now
            self._unread[path.name] = (
                f"What PID {pid} collected is not known, because {path} cannot be read: "
                f"{error.strerror}."
            )
            return
        self._unread.pop(path.name, None)
        for file, each in list(self._running.items()):
            if each.ring.image[:3] == ring.image[:3]:  # which runs another image since
                self._end(file, each)
        self._running[path.name] = watched
        if not watched.runs():
            self._end(path.name, watched)
        if watched.pid not in self._had_no_ring:  # else that was who had the PID before
            self._reasons.pop(watched.pid, None)

    def _take(self, file: str, watched: Watched, *, has_ended: bool = False) -> bool:
        """Whether it could be; else it is watched no longer."""
        try:
            records = watched.take(has_ended=has_ended)
        except Exception as error:  # whatever is wrong with one, all others are watched on
            self.note(f"{watched.name} ({watched.pid}) was watched no longer, because {error}.")
            self._close(file, watched)
            return False
        try:
            if len(records):
                self._record(watched, records)
        except Exception as error:
            self.note(f"Some collections could not be written, because of {error!r}.")
        return True

    def _end(self, file: str, watched: Watched) -> None:
        if self._long_pauses:
            with suppress(OSError):  # the folder may be gone
                for path in self._folder.glob(f"{watched.ring.image.pid}-*.long"):
                    self._take_long(self._long_pauses, path, watched)
        if self._take(file, watched, has_ended=True):
            self._close(file, watched)

    def _close(self, file: str, watched: Watched) -> None:
        del self._running[file]
        watched.end()
        self._lost_before += watched.lost
        self._ended.add(watched.number, watched.described())

    def _look_at(self, process: psutil.Process, stacks: set[int]) -> None:
        """An interpreter is given a moment to begin; the command may have ended after it.

        One with the stack of another is its fork, which has collected nothing since.
        """
        with suppress(psutil.Error, OSError):
            found = image_of(process.pid)
            if process.pid in self._reasons or (found and found.stack and found.stack in stacks):
                return
            is_young = time.time() - process.create_time() < _BEGINS_SECONDS
            if is_python(process.exe()) and (not is_young or process == self._root):
                self._note(process)

    def _note(self, process: psutil.Process, error: int | None = None) -> None:
        command = command_of(process) or (self._command if process == self._root else [])
        reason = self._why_not(process, self._folder, command, error)
        self._name(NotProbed(process.pid, name_of(command), reason))

    def _name(self, missed: NotProbed) -> None:
        if missed.pid not in self._reasons and len(self._reasons) >= _MOST_NAMED:
            self._more_not_probed += 1
        else:
            self._reasons[missed.pid] = missed
