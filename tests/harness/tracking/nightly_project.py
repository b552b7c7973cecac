"""A project that asv measures for `gcbench nightly`; its benchmarks log that they have run."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
from asv_project import COPY_TOY
from planted_nights import FIRST_DAY, git

from harness.tracking.history import load_history
from harness.tracking.nightly.result import NightlyResult

ROOT = Path(__file__).parents[3]
SERIES = {"suite.track_gen0", "suite.track_itl"}

SUITE = """
import os
import random

import toy


def log(name):
    line = f"{toy.NUMBER} {name} {os.getpid()}\\n".encode()
    where = os.open(os.environ["TOY_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(where, line)
    os.close(where)


def track_itl():
    random_ = random.Random(os.getpid())
    samples = [toy.COST * random_.gauss(1, 0.005) for _ in range(7)]
    log("itl")
    return {"samples": samples, "number": 1}

track_itl.unit = "s"
track_itl.direction = "lower"
track_itl.kind = "timing"
track_itl.noise_floor = 0.02
track_itl.version = "1"


def track_gen0():
    log("gen0")
    return 100

track_gen0.unit = "collections"
track_gen0.direction = "lower"
track_gen0.kind = "exact"
track_gen0.version = "1"
"""


class Project:
    """A checkout below ``place`` with asv's configuration, a home, a log and asv's environment.

    `restart` keeps the environment and begins all else anew: it takes seconds to make.
    """

    def __init__(self, place: Path) -> None:
        self.folder, self.home, self.log = place / "toy", place / "home", place / "log"
        self.output, self.results = place / "nightly", place / "results"
        self.hashes: list[str] = []
        self.home.mkdir()
        (self.folder / "benchmarks").mkdir(parents=True)
        (self.folder / "benchmarks" / "__init__.py").touch()
        (self.folder / "benchmarks" / "suite.py").write_text(SUITE)
        (self.folder / "asv.conf.json").write_text(
            json.dumps(
                {
                    "version": 1,
                    "project": "toy",
                    "repo": ".",
                    "branches": ["main"],
                    "environment_type": "virtualenv",
                    "env_dir": "../env",
                    "results_dir": "../results",
                    "pythons": [f"{sys.version_info.major}.{sys.version_info.minor}"],
                    "build_command": [],
                    "install_command": [COPY_TOY],
                    "uninstall_command": [],
                }
            )
        )
        git(self.folder, "init", "-q", "-b", "main")

    def restart(self) -> None:
        """No commit, nothing measured."""
        git(self.folder, "update-ref", "-d", "refs/heads/main")
        for folder in (self.output, self.results):
            shutil.rmtree(folder, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        self.hashes = []

    def commit(self, cost: float = 1.0, toy: str | None = None) -> str:
        """One more commit, a day later: what its timing costs, or its module, "" for none."""
        number = len(self.hashes)
        content = f"NUMBER = {number}\nCOST = {cost}\n" if toy is None else toy
        if content:
            (self.folder / "toy.py").write_text(content)
        else:
            (self.folder / "toy.py").unlink()
        git(self.folder, "add", "--all")
        when = f"{(FIRST_DAY + number) * 86_400} +0000"
        git(
            self.folder,
            "commit",
            "-q",
            "-m",
            f"Change {number}",
            GIT_COMMITTER_DATE=when,
            GIT_AUTHOR_DATE=when,
        )
        self.hashes.append(git(self.folder, "rev-parse", "HEAD"))
        return self.hashes[-1]

    @property
    def environment(self) -> dict[str, str]:
        """Of everything that is run here."""
        return os.environ | {
            "HOME": str(self.home),
            "TOY_LOG": str(self.log),
            "PYTHONPATH": str(ROOT),
        }

    def command(self, *arguments: str) -> list[str]:
        """``gcbench nightly`` as a process of its own."""
        config = str(self.folder / "asv.conf.json")
        return [
            sys.executable,
            "-m",
            "harness",
            "nightly",
            config,
            "--output",
            str(self.output),
            "--machine",
            "box",
            "--quiet",
            *arguments,
        ]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Begin a night."""
        return subprocess.Popen(
            self.command(*arguments),
            env=self.environment,
            cwd=self.folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def result(self) -> NightlyResult:
        """What the last night has written down."""
        path = self.output / "result.json"
        return msgspec.json.decode(path.read_bytes(), type=NightlyResult)

    def night(self, *arguments: str) -> tuple[int, str]:
        """A whole night: its status, and what it has said."""
        process = self.start(*arguments)
        said, _ = process.communicate()
        return process.returncode, said

    def kept(self) -> set[int]:
        """Numbers of the commits that are measured; every file that is there is read."""
        places = (self.results, self.output / "staging")
        for path in (path for place in places for path in place.rglob("*.json")):
            if ".partial" not in str(path):
                json.loads(path.read_text())
        found = load_history(self.results)
        assert found.problems == []
        figures = found.figures
        by_commit = figures.groupby("commit", observed=True)["series"].agg(list)
        assert all(sorted(series) == sorted(SERIES) for series in by_commit)
        assert (figures["outcome"] == "measured").all()
        staged = [path.name for path in (self.output / "staging" / "commits").glob("*.done")]
        return {
            number
            for number, commit in enumerate(self.hashes)
            if commit in by_commit.index or f"{commit}.done" in staged
        }

    def logged(self) -> list[int]:
        """The numbers of commits in the log, once for each benchmark that came to its end."""
        return [int(line.split()[0]) for line in self.log.read_text().splitlines()]
