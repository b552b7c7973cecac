"""A night that ends at each of its operations on files in turn: killed there, or its disk full.

    python interrupted_night.py kill|full FOLDER

Each interruption is a process of its own on a folder of its own; the next night goes on where it
was. Prints as JSON how many there were and what was wrong with any.
"""

import json
import os
import signal
import sys
from pathlib import Path

from asv_writer import Benchmark, write_benchmarks, write_commit
from crash_points import ACTIONS, Act, at, watch

from harness.files import StoreError
from harness.tracking.nightly.measured_commits import measured_commits
from harness.tracking.nightly.night import NightPlace, measure_commit, take_up

COMMITS = ["a" * 40, "b" * 40]
MACHINE = "box"
BENCHMARK = Benchmark("suite.track")
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
    place = NightPlace(
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


def run(folder: Path, act: Act | None) -> int:
    """A night in a process of its own; how it ended. ``act`` meets each operation on files."""
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    child = os.fork()
    if child:
        os.close(log)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        if act:
            watch(act)
        night(folder, log)
        status = _DONE
    except StoreError as said:
        status = _SAID if "\n" not in str(said) else 2
    finally:
        os._exit(status)


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
    status = run(folder, at(number, ACTIONS[kind]))
    if status not in (_DONE, _KILLED if kind == "kill" else _SAID):
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
