"""A night that ends at each of its operations on files in turn: killed there, or its disk full.

    python interrupted_night.py killed|full FOLDER

Each interruption is a process of its own on a folder of its own; the next night goes on where it
was. Prints as JSON how many there were and what was wrong with any.
"""

import errno
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from asv_writer import Benchmark, write_benchmarks, write_commit

from harness.files import StoreError
from harness.tracking.nightly.measured_commits import measured_commits
from harness.tracking.nightly.night import Place, measure_commit, take_up

COMMITS = ["a" * 40, "b" * 40]
MACHINE = "box"
BENCHMARK = Benchmark("suite.track")
_NEEDS_ROOM = ("os.rename", "os.mkdir")
_CHANGES = ("os.remove", "os.rmdir", *_NEEDS_ROOM)
_DONE, _SAID, _KILLED = 0, 7, -signal.SIGKILL


class Measuring:
    """In asv's place: writes its files one by one, each in two parts, and notes what it did."""

    def __init__(self, log: int) -> None:
        self._log = log

    def measure(self, commit: str, target: Path, *, bench: str = "") -> str:
        try:
            self._write(commit, target / "results")
        except OSError as error:
            return f"asv ended with status 1: {error}"
        os.write(self._log, f"{commit}\n".encode())
        return ""

    def _write(self, commit: str, results: Path) -> None:
        write_benchmarks(results, [BENCHMARK])
        path = write_commit(results, commit, 1, [(BENCHMARK, [1.0])])
        for each in (results / "benchmarks.json", results / MACHINE / "machine.json", path):
            text = each.read_text()
            each.write_text(text[:20])
            with each.open("a") as file:
                file.write(text[20:])


def night(folder: Path, log: int) -> None:
    """All that there is to measure."""
    place = Place(
        folder / "asv.conf.json",
        folder / "results",
        folder,
        ["main"],
        folder / "commits",
        folder / "again",
    )
    take_up(place)
    known = measured_commits(place.results, MACHINE)
    left = [commit for commit in COMMITS if commit not in known.commits]
    for commit in left:
        tried = measure_commit(Measuring(log), place, commit, "")  # type: ignore[arg-type]
        if tried.reason:
            raise StoreError(tried.reason)


def run(folder: Path, hook: Callable[[str, tuple[object, ...]], None] | None) -> int:
    """A night in a process of its own; how it ended."""
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    child = os.fork()
    if child:
        os.close(log)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        if hook:
            sys.addaudithook(hook)
        night(folder, log)
        status = _DONE
    except StoreError as said:
        status = _SAID if "\n" not in str(said) else 2
    finally:
        os._exit(status)


def interruption(kind: str, number: int) -> Callable[[str, tuple[object, ...]], None]:
    """Kill the process at operation ``number``, or let nothing be written from there on."""
    left = number

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        flags = arguments[2] if event == "open" else 0
        is_written = isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))
        if event not in _CHANGES and not is_written:
            return
        left -= 1
        if left >= 0:
            return
        if kind == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if is_written or event in _NEEDS_ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return hook


def kept(folder: Path) -> set[str]:
    """Commits that need not be measured again. Raises ValueError for a file that is cut short."""
    for path in (folder / "results").rglob("*.json"):
        json.loads(path.read_text())
    names = [path.name for path in (folder / "results" / MACHINE).glob("*-py3.11.json")]
    names += [path.name for path in (folder / "commits").glob("*.done")]
    return {commit for commit in COMMITS if any(name.startswith(commit[:8]) for name in names)}


def try_out(kind: str, folder: Path, number: int) -> tuple[bool, str]:
    """Whether the night came to its end in spite of it, and what is wrong."""
    folder.mkdir()
    status = run(folder, interruption(kind, number))
    if status not in (_DONE, _KILLED if kind == "killed" else _SAID):
        return False, f"the night ended with {status}"
    before = kept(folder)
    log = (folder / "log").read_text().split()
    if run(folder, None) != _DONE:
        return False, "the next night did not end well"
    again = (folder / "log").read_text().split()[len(log) :]
    if sorted(again) != sorted(set(COMMITS) - before):
        return False, f"{len(before)} were kept, and {len(again)} measured after"
    if kept(folder) != set(COMMITS) or list((folder / "commits").iterdir()):
        return False, "something is missing or left over at the end"
    return status == _DONE, ""


def main(kind: str, folder: Path, every: int) -> None:
    """Interrupt nights at each ``every``-th operation, until one ends of itself."""
    folder.mkdir(parents=True)
    number, wrong, ended = 0, list[str](), False
    while not ended:
        ended, sentence = try_out(kind, folder / str(number), number)
        if sentence:
            wrong.append(f"{kind} at operation {number}: {sentence}")
        number += every
    print(json.dumps({"interruptions": number - every, "wrong": wrong}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
