"""Disks that are full, that may not be written to, and files that may grow no larger.

A small tmpfs is mounted where that is possible, else a limit on the size of files does it. What a
command says is a sentence, and what it leaves is whole.
"""

import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from attempts import Tried
from commands import run, run_forked, wrong
from corpus import TINY, Corpus
from surroundings import Surroundings, damaged, half_written

_LIMIT_SECONDS = 60.0
_MOST_BYTES = 200_000
REAL = ["compare", *TINY, "--gc", "default,disabled", "--rounds", "1", "--no-counting"]


class Writer(NamedTuple):
    """A command that writes; DISK in it stands for the folder. ``is_real``: its trials are run."""

    words: list[str]
    is_real: bool = False


WRITERS = (
    Writer([*REAL, "--output", "DISK/runs"], is_real=True),
    Writer(
        [
            "run",
            *TINY,
            "--output",
            "DISK/runs",
            "--json",
            "DISK/run.json",
            "--perfetto",
            "DISK/run.pftrace",
        ],
        is_real=True,
    ),
    Writer([*REAL, "--output", "DISK/runs", "--json", "DISK/result.json"]),
    Writer(
        ["compare", "--experiment", "padding", "--output", "DISK/runs", "--json", "DISK/p.json"]
    ),
    Writer(
        [
            "doctor",
            "--noise",
            "--device",
            "null",
            "--rounds",
            "8",
            "--output",
            "DISK/runs",
            "--json",
            "DISK/noise.json",
        ]
    ),
    Writer(
        [
            "gate",
            "HEAD~1",
            "HEAD",
            *TINY,
            "--budget",
            "0",
            "--output",
            "DISK/runs",
            "--export",
            "markdown=DISK/gate.md",
            "--export",
            "bencher=DISK/bmf.json",
            "--json",
            "DISK/gate.json",
        ]
    ),
    Writer(
        [
            "nightly",
            "results/nights/asv.conf.json",
            "--machine",
            "box",
            "--output",
            "DISK/night",
            "--export",
            "markdown=DISK/night.md",
            "--json",
            "DISK/result.json",
        ]
    ),
    Writer(["dashboard", "results", "--output", "DISK/site"]),
    Writer(["report", "results/nights/results", "--csv", "DISK/all.csv", "--json", "DISK/h.json"]),
    Writer(["report", "results/nights/results", "--otava", "DISK/otava"]),
    Writer(
        [
            "list",
            "workloads",
            "chat",
            "--image",
            "DISK/chat.svg",
            "--mooncake",
            "DISK/chat.jsonl",
            "--json",
            "DISK/chat.json",
        ]
    ),
    Writer(["doctor", "--output", "DISK/runs", "--json", "DISK/doctor.json"]),
)
FAULTS = ("full", "read-only", "limited")


class Bench:
    """Where the attempts read."""

    def __init__(self, corpus: Corpus, _: Surroundings) -> None:
        self.corpus = corpus
        self.can_mount = os.geteuid() == 0 and _can_mount(_.folder / "mount")


def attempt(random: Random, place: Surroundings, bench: Bench) -> Tried:
    """A command that writes, on a disk that does not let it."""
    writer, fault = random.choice(WRITERS), random.choice(FAULTS)
    num_bytes = int(2 ** random.uniform(0, 17.6))  # as often below 512 bytes as above
    if not bench.can_mount:
        fault = "limited" if fault == "full" or os.geteuid() == 0 else fault
    disk = place.folder / "disk"
    disk.mkdir()
    words = [word.replace("DISK", str(disk)) for word in writer.words]
    with _faulty(fault, disk, num_bytes if fault == "full" else 0):
        limit = _limit(num_bytes) if fault == "limited" else None
        way = run if writer.is_real else run_forked
        ended = way(words, place, _LIMIT_SECONDS, cwd=bench.corpus.checkout, prepare=limit)
        found = wrong(ended, words)
        found += ["it did not end"] if ended.is_late else []
        found += damaged(disk) + half_written(disk) + place.left()
    size = f" of {num_bytes} bytes" if fault != "read-only" else ""
    return Tried((fault, words[0]), f"{fault}{size}: {shlex.join(['gcbench', *words])}", found)


def _limit(num_bytes: int) -> Callable[[], None]:
    def limit() -> None:
        sys.dont_write_bytecode = True  # a fork has its flags from this process
        resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, num_bytes))

    return limit


@contextmanager
def _faulty(fault: str, disk: Path, num_bytes: int) -> Iterator[None]:
    if fault == "limited":
        # Bytecode that is cut short would break the checkout for all that comes after.
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        try:
            yield
        finally:
            del os.environ["PYTHONDONTWRITEBYTECODE"]
    elif os.geteuid() != 0:
        disk.chmod(0o555)
        yield
        disk.chmod(0o755)
    else:
        # A page of 4,096 bytes is the least that a tmpfs gives out, and inodes count apart.
        size = f"size={max(num_bytes, 1)}" if fault == "full" else "ro"
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", disk], check=True)
        try:
            yield
        finally:
            subprocess.run(["umount", "--lazy", disk], check=True)


def _can_mount(folder: Path) -> bool:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False
    )
    if done.returncode == 0:
        subprocess.run(["umount", folder], check=True)
    return done.returncode == 0
