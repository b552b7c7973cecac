"""A process killed, interrupted or out of room at its n-th write, rename, start or message.

`crash_points` counts the operations of any process that has the role; the moment is drawn from as
many as a command that was let alone has come to.
"""

import os
import shlex
import subprocess
from random import Random
from typing import NamedTuple

from attempts import Tried
from commands import ROOT, status_of
from corpus import COMPARE, TINY, Corpus
from crash_points import environment, operations
from resumption import Whole, resumed
from surroundings import Surroundings, damaged, half_written
from targets import LIMIT_SECONDS, OUTPUT_LOOP, RANK, Target, start


class Case(NamedTuple):
    """Which process, by a word of its command line, meets what at which kind of operation."""

    name: str
    target: Target
    role: str
    kinds: tuple[str, ...]
    actions: tuple[str, ...]


_FILES = ("write", "mkdir", "rename", "remove")
_ENDS = ("kill", "term", "interrupt")
COMMAND = Target("compare", [*COMPARE, "--rounds", "2"])
RUN = Target("run", ["run", *TINY])
RANKS = Target("ranks", [*COMPARE, "--worker", "process", "--wire", "columns"])
OUTPUT = Target("output process", [*COMPARE, "--output-processing", "process"])
GATE = Target("gate", ["gate", "HEAD~1", "HEAD", "--exact-only", *TINY])
CASES = (
    Case("compare", COMMAND, "gcbench", _FILES, (*_ENDS, "full")),
    Case("compare", COMMAND, "gcbench", ("spawn", "message"), _ENDS),
    Case("run", RUN, "gcbench", (*_FILES, "spawn", "message"), _ENDS),
    Case("gate", GATE, "gcbench", (*_FILES, "spawn", "message"), _ENDS),
    Case("a trial", COMMAND, "trial", ("write", "message"), (*_ENDS, "full")),
    Case("a trial", RANKS, "trial", ("spawn", "message"), _ENDS),
    Case("a worker", RANKS, RANK, ("write", "message"), _ENDS),
    Case("an output process", OUTPUT, OUTPUT_LOOP, ("write",), _ENDS),
)


class Bench:
    """How many operations of a kind there are where nothing happens, by case."""

    def __init__(self, corpus: Corpus, common: Surroundings) -> None:
        self.corpus, self._common = corpus, common
        self._counted: dict[tuple[str, str, str], tuple[int, Whole]] = {}

    def counted(self, case: Case, kind: str) -> tuple[int, Whole]:
        of = case.target.name, case.role, kind
        if of not in self._counted:
            place = Surroundings(self._common.folder / str(len(self._counted)))
            process = _begin(case, "kill", kind, 10**9, place, self.corpus)
            assert status_of(process, LIMIT_SECONDS) == 0, (place.folder / "err").read_text()
            stored = frozenset(path.name for path in place.runs.glob("*/trials/*"))
            self._counted[of] = operations(place.runs), Whole(0.0, stored)
        return self._counted[of]


def attempt(random: Random, place: Surroundings, bench: Bench) -> Tried:
    """One crash point."""
    case = random.choice(CASES)
    kind, action = random.choice(case.kinds), random.choice(case.actions)
    count, whole = bench.counted(case, kind)
    number = random.randrange(max(count, 1))
    process = _begin(case, action, kind, number, place, bench.corpus)
    is_command = case.role == "gcbench"
    found = []
    status = status_of(process, LIMIT_SECONDS)
    err = (place.folder / "err").read_text(errors="replace")
    expected = {0, 3} if not is_command else EXPECTED[action]
    if status not in expected:
        found.append(f"it ended with {status}: {err.strip()[-300:]}")
    if "Traceback" in err:
        found.append("a traceback")
    is_killed = is_command and action == "kill"
    found += place.left(temporary=not is_killed) + damaged(place.runs)
    if not is_killed:
        found += half_written(place.runs)
    if case.target.resumes and not found:
        found += resumed(case.target, place, bench.corpus, whole)
    what = f"{action} at {kind} {number} of {count} of {case.role}: " + shlex.join(
        ["gcbench", *case.target.words]
    )
    return Tried((case.name, action), what, found)


EXPECTED = {"kill": {0, -9}, "term": {0, 130}, "interrupt": {0, 130}, "full": {0, 2, 3}}
"""0: where the moment was too late to matter."""


def _begin(
    case: Case, action: str, kind: str, number: int, place: Surroundings, corpus: Corpus
) -> "subprocess.Popen[bytes]":
    point = environment(case.role, action, kind, number, place.runs)
    point["PYTHONPATH"] += f"{os.pathsep}{ROOT}"
    return start(case.target._replace(environment=point), place, corpus)
