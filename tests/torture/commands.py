"""Runs gcbench's command line: as a process of its own, or in a fork that has imported it."""

import os
import re
import resource
import select
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from small import answer
from surroundings import Surroundings

from harness.cli.exit_codes import MEANINGS, ExitCode
from harness.cli.main import main
from harness.experiment.executor import Executor
from harness.metrics import METRICS
from harness.trial.spec import Trial, TrialResult

ROOT = Path(__file__).parents[2]
GCBENCH = [sys.executable, "-m", "gcbench"]
MOST_LINES = 3
_LIMIT_BYTES = 6 << 30
_GIVE_UP_SECONDS = 120.0
_PROGRESS = re.compile(
    r"\d+ of \d+( trials|: .*)|(part|command) \d+ of \d+: .*|(not )?measured: .*|no result: .*"
)
"""Lines that say how far it is."""


class Ended(NamedTuple):
    """How a command has ended. ``is_late``: only when it was interrupted, or even killed."""

    status: int
    out: str
    err: str
    is_late: bool


class AtOnce(Executor):
    """An executor whose trials have been run before they begin; the same trial, the same answer."""

    def batch_size(self, cells: object) -> int:
        return 4

    def run(self, trials: Sequence[Trial]) -> Iterator[TrialResult]:
        for trial in trials:
            seed = zlib.crc32(repr((trial.cell, trial.mode, trial.seed)).encode())
            noise = 1 + (seed % 1000) / 1e5
            yield answer(trial, dict.fromkeys(METRICS, noise))


def run(
    words: Sequence[str],
    place: Surroundings,
    limit_seconds: float,
    cwd: Path | None = None,
    environment: Mapping[str, str] = {},
    prepare: Callable[[], None] | None = None,
) -> Ended:
    """The real program; interrupted after ``limit_seconds``."""
    with (place.folder / "out").open("wb") as out, (place.folder / "err").open("wb") as err:
        process = subprocess.Popen(
            [*GCBENCH, *words],
            cwd=cwd or place.folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=place.environment | {"PYTHONPATH": str(ROOT)} | environment,
            preexec_fn=lambda: _prepare(prepare),  # noqa: PLW1509
        )
        return _ended(process.pid, place, limit_seconds)


def run_forked(
    words: Sequence[str],
    place: Surroundings,
    limit_seconds: float,
    cwd: Path | None = None,
    prepare: Callable[[], None] | None = None,
) -> Ended:
    """The same in a fork of this process, whose trials are `AtOnce`."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return _ended(child, place, limit_seconds)
    status = int(ExitCode.INTERNAL_ERROR)
    try:
        for number, name in ((0, os.devnull), (1, "out"), (2, "err")):
            flags = os.O_RDONLY if not number else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.dup2(os.open(place.folder / name, flags), number)
        os.environ.clear()
        os.environ.update(place.environment)
        os.chdir(cwd or place.folder)
        _prepare(prepare)
        sys.argv[:] = ["gcbench", *words]
        status = main(list(words), lambda _timeout: AtOnce())
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        os.write(2, b"Traceback: it went past main\n")
    finally:
        os._exit(status)


def wrong(ended: Ended, words: Sequence[str], *, most_memory: bool = True) -> list[str]:
    """A sentence for each thing that no command may do, however it is called.

    ``most_memory``: whether it may ask for more memory than there is.
    """
    found = []
    if ended.is_late and ended.status not in (ExitCode.INTERRUPTED, ExitCode.MEASURED):
        found.append(f"it did not end by itself, and when interrupted with {ended.status}")
    if ended.status not in MEANINGS:
        found.append(f"status {ended.status} is not documented")
    has_no_memory = most_memory and "MemoryError" in ended.err
    if ended.status == ExitCode.INTERNAL_ERROR and not has_no_memory:
        found.append(f"an internal error: {ended.err.strip()[:300]}")
    if "Traceback" in ended.err or "Traceback" in ended.out:
        found.append(f"a traceback: {ended.err.strip()[-300:]}")
    said = [line for line in ended.err.splitlines() if not _PROGRESS.fullmatch(line)]
    if ended.status == ExitCode.WRONG_USAGE and not 1 <= len(said) <= MOST_LINES:
        found.append(f"{len(said)} lines on standard error: {ended.err[:300]!r}")
    if ended.status == ExitCode.WORSE and not _can_be_worse(words):
        found.append("status 1 of a command that judges nothing")
    return found


def _can_be_worse(words: Sequence[str]) -> bool:
    return bool({"gate", "nightly", "--fail-on"} & {word.split("=")[0] for word in words})


def _prepare(also: Callable[[], None] | None) -> None:
    """Ctrl-C as a terminal has it, and no more memory than the machine can spare."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_AS, (_LIMIT_BYTES, _LIMIT_BYTES))
    if also:
        also()


def status_of(process: "subprocess.Popen[bytes]", limit_seconds: float) -> int | None:
    """How it ended; None where it had to be killed for want of an end."""
    try:
        return process.wait(limit_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def _ended(pid: int, place: Surroundings, limit_seconds: float) -> Ended:
    is_late = not _ends(pid, limit_seconds)
    if is_late:
        os.kill(pid, signal.SIGINT)
        if not _ends(pid, _GIVE_UP_SECONDS):
            os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    out, err = ((place.folder / name).read_text(errors="replace") for name in ("out", "err"))
    return Ended(status, out, err, is_late)


def _ends(pid: int, limit_seconds: float) -> bool:
    """Whether a child ends in time; its status is still to be asked for."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(1000 * limit_seconds))
    finally:
        os.close(descriptor)
