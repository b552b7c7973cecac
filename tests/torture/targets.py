"""Commands of small trials, and which of their processes is to meet something."""

import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from commands import GCBENCH, ROOT
from corpus import COMPARE, TINY, Corpus
from surroundings import Surroundings

from engines.cache import cache_root
from engines.vllm.releases import VLLM

LIMIT_SECONDS = 1200.0
"""For a command, on a machine that others use too."""
RANK, OUTPUT_LOOP = (
    "engines.builtin.worker.process_loop",
    "engines.builtin.output_processing.process_loop",
)
_SENDER = "harness.trial.sender_process"


class Target(NamedTuple):
    """A command and which of its processes gets the signal, by a word of its command line.

    ``victim``: "" for the command itself. ``weight``: how often among 100 or so.
    """

    name: str
    words: list[str]
    victim: str = ""
    weight: int = 5
    environment: Mapping[str, str] = {}

    @property
    def resumes(self) -> bool:
        return self.words[0] == "compare"


RUN = ["run", *TINY]
WORKER = ["--worker", "process", "--wire", "columns"]
VLLM = [
    "releases",
    "vllm",
    VLLM.PINNED,
    "--gc",
    "as_is",
    "--rounds",
    "1",
    "--repeats",
    "1",
    "--num-requests",
    "4",
    "--output-lens",
    "4",
    "--batch-size",
    "4",
    "--quiet",
]
CACHE = {"GCBENCH_CACHE": str(cache_root())}
TARGETS = (
    Target("compare", [*COMPARE, "--rounds", "2"], weight=25),
    Target("compare, worker", [*COMPARE, *WORKER], weight=8),
    Target("run", RUN, weight=8),
    Target("run, output process", [*RUN, "--output-processing", "process"], weight=6),
    Target("run, sender", [*RUN, "--axis", "arrivals=poisson:100"], weight=5),
    Target("gate", ["gate", "HEAD~1", "HEAD", "--exact-only", *TINY], weight=8),
    Target("nightly", ["nightly"], weight=16),
    Target("releases", VLLM, weight=3, environment=CACHE),
    Target("a trial", COMPARE, "trial", weight=7),
    Target("a worker", [*COMPARE, *WORKER], RANK, weight=6),
    Target("a rank of two", [*COMPARE, *WORKER, "--axis", "tensor-parallel=2"], RANK, weight=6),
    Target(
        "an output process", [*COMPARE, "--output-processing", "process"], OUTPUT_LOOP, weight=6
    ),
    Target("a sender", [*COMPARE, "--axis", "arrivals=poisson:100"], _SENDER, weight=4),
)


def start(
    target: Target, place: Surroundings, corpus: Corpus, *more: str
) -> subprocess.Popen[bytes]:
    """Begin a target's command, as a shell in the foreground would."""
    return begin(
        [*GCBENCH, *target.words, *more, "--output", str(place.runs)],
        place,
        corpus.checkout,
        target.environment,
    )


def begin(
    command: list[str], place: Surroundings, cwd: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    with (place.folder / "out").open("wb") as out, (place.folder / "err").open("wb") as err:
        return subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=place.environment | {"PYTHONPATH": str(ROOT)} | environment,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        )
