"""A repository, and results of its commits as asv would have written them: nights to judge."""

import json
import os
import random
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from asv_writer import Benchmark, write_benchmarks, write_commit
from scratch_repository import ENVIRONMENT

from harness.cli.main import main
from harness.tracking.nightly.night import NightPlace
from harness.tracking.nightly.result import NightlyResult

FIRST_DAY = 20_454  # 1 January 2026
MACHINE = "box"
EXACT = Benchmark(
    "suite.track_gen0",
    {"gc": ["default", "disabled"]},
    attributes={
        "unit": "collections",
        "direction": "lower",
        "kind": "exact",
        "noise_floor": 0.01,
        "least_change": 2,
    },
)
TIMING = Benchmark(
    "suite.track_itl",
    attributes={"unit": "s", "direction": "lower", "kind": "timing", "noise_floor": 0.02},
)


def noisy(levels: Sequence[float], noise: float = 0.01, seed: int = 1) -> list[float]:
    """A night's value of each level."""
    random_ = random.Random(seed)
    return [level * random_.gauss(1, noise) for level in levels]


class Ended(NamedTuple):
    """How a run ended, what it has said, and what it has written down."""

    status: int
    said: str
    result: NightlyResult
    markdown: str


def git(folder: Path, *arguments: str, given: bytes = b"", **environment: str) -> str:
    """What git prints in ``folder``; ``given`` is what it reads."""
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        check=True,
        input=given,
        env=os.environ | ENVIRONMENT | environment,
    )
    return done.stdout.decode(errors="replace").strip()


def fast_import(folder: Path, graph: Sequence[tuple[str, Sequence[int]]]) -> list[str]:
    """Make a repository of commits, each a message and its parents' numbers; their hashes.

    The last is ``main``; the others are ``refs/tags/N``, so that each is kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    stream = []
    for number, (message, parents) in enumerate(graph):
        words, when = message.encode(errors="surrogateescape"), (FIRST_DAY + number) * 86_400
        lines = [
            f"commit refs/tags/{number}",
            f"mark :{number + 1}",
            f"committer A <a@example.invalid> {when} +0000",
            f"data {len(words)}",
        ]
        stream.append("\n".join(lines).encode() + b"\n" + words + b"\n")
        stream += [
            b"%s :%d\n" % (b"merge" if place else b"from", parent + 1)
            for place, parent in enumerate(parents)
        ]
    stream.append(b"reset refs/heads/main\nfrom :%d\n" % len(graph))
    git(folder, "fast-import", "--quiet", given=b"".join(stream))
    return git(
        folder, "rev-parse", *(f"refs/tags/{number}" for number in range(len(graph)))
    ).split()


class Nights:
    """``count`` commits in a line at ``folder`` and what was measured of them.

    Those ``aside`` follow the line and are on no branch.
    """

    def __init__(
        self,
        folder: Path,
        count: int,
        messages: Mapping[int, str] = {},
        aside: Collection[int] = (),
    ) -> None:
        self.folder, self.results = folder, folder / "results"
        self.output = folder / "nightly"
        names = [messages.get(number, f"Change {number}") for number in range(count)]
        line = [number for number in range(count) if number not in aside]
        parents = [[each for each in line if each < number][-1:] for number in range(count)]
        self.hashes = fast_import(folder, list(zip(names, parents, strict=True)))
        git(folder, "update-ref", "refs/heads/main", self.hashes[line[-1]])
        self.paths: list[Path] = []
        (folder / "asv.conf.json").write_text(
            json.dumps({"version": 1, "project": "toy", "repo": ".", "branches": ["main"]})
        )

    def clear(self) -> None:
        """Forget what was measured and said."""
        for folder in (self.results, self.output):
            shutil.rmtree(folder, ignore_errors=True)

    def plant(
        self,
        values: Sequence[tuple[Benchmark, Sequence[Any]]],
        machine: str = MACHINE,
        only: Collection[int] | None = None,
        ended: Mapping[str, int] = {},
    ) -> None:
        """Write the value of each benchmark and commit; a list where it has parameters.

        ``only``: commits that are measured. ``ended``: from which on a benchmark is not.
        """
        write_benchmarks(self.results, [benchmark for benchmark, _ in values])
        self.paths = []
        for number, commit in enumerate(self.hashes):
            if only is not None and number not in only:
                continue
            rows = [
                (each, of[number] if isinstance(of[number], list) else [of[number]])
                for each, of in values
                if number < ended.get(each.name, len(self.hashes))
            ]
            self.paths.append(
                write_commit(self.results, commit, FIRST_DAY + number, rows, machine=machine)
            )

    @property
    def place(self) -> NightPlace:
        """As `harness.tracking.nightly.night` takes it."""
        staging = self.output / "staging"
        return NightPlace(
            self.folder / "asv.conf.json",
            self.results,
            self.folder,
            ["main"],
            staging / "commits",
            staging / "again",
        )

    def run(self, *arguments: str, machine: str = MACHINE) -> int:
        """``gcbench nightly``; its status."""
        return main(
            [
                "nightly",
                str(self.folder / "asv.conf.json"),
                "--output",
                str(self.output),
                "--machine",
                machine,
                "--quiet",
                *arguments,
            ]
        )

    def end(self, capsys: Any, *arguments: str, machine: str = MACHINE) -> Ended:
        """The same, and what it left behind."""
        for name in ("result.json", "night.md"):
            (self.output / name).unlink(missing_ok=True)
        status = self.run(*arguments, machine=machine)
        result = msgspec.json.decode((self.output / "result.json").read_bytes(), type=NightlyResult)
        said = capsys.readouterr()
        return Ended(status, said.out + said.err, result, (self.output / "night.md").read_text())


def with_params(path: Path, **params: str) -> None:
    """Note more of the machine in a result file."""
    content = json.loads(path.read_text())
    content["params"] |= params
    path.write_text(json.dumps(content))
