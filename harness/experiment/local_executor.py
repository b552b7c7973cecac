"""Runs trials in fresh interpreters: prepared side by side, measured one at a time.

Importing torch and building a heap take longer than the measurement. So the interpreters of a
batch get ready together and then wait; while one of them measures, nothing else runs.
"""

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

import msgspec

from engines.registry import ENGINES
from harness.axes import Cell
from harness.experiment.grid import is_alone
from harness.machine.describe import cores_usable
from harness.trial.spec import GO, PAUSED, READY, REFUSED, Trial, TrialFailure, TrialResult

_PREPARED_AT_ONCE = 4
"""Of interpreters that take no turns, so many get ready side by side at most: each holds torch and
a heap. How many take turns the plan says."""

_KEPT_VARIABLES = frozenset({"PYTHONPATH", "PYTHONHOME"})


class LocalExecutor(NamedTuple):
    """This machine. ``timeout_seconds`` holds for a preparation and for a measurement."""

    timeout_seconds: float

    def run(self, trials: Sequence[Trial]) -> Iterator[TrialResult | TrialFailure]:
        """Each trial's result, or why there is none, in order; afterwards no process is left.

        A time-out, a crash and a kill are answers like any other; Ctrl-C ends all trials and goes
        on up. Where none of the trials is timed they run side by side: a count does not mind.
        Trials with slices take turns, so that a machine that is slow for a moment is so for all.
        """
        with ExitStack() as stack:
            with _no_interrupt():
                begun = [
                    stack.enter_context(TrialProcess(trial, self.timeout_seconds))
                    for trial in trials
                ]
            for process in begun:
                process.wait_until_ready()
            if all(trial.mode != "timing" for trial in trials):
                for process in begun:
                    process.go()
            elif any(trial.slice_steps for trial in trials):
                _take_turns(begun)
            for process in begun:
                yield process.measure()

    def batch_size(self, cells: Iterable[Cell]) -> int:
        """Trials that get ready side by side: one where a cell takes all of its device."""
        return 1 if any(map(is_alone, cells)) else min(cores_usable(), _PREPARED_AT_ONCE)


def _take_turns(begun: Sequence["TrialProcess"]) -> None:
    # On one core: another may be shared with a neighbour's machine, and slow for as long as he is.
    core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    for process in begun:
        process.pin(core)
    under_way = list(begun)
    while under_way:
        # Round and round, so that each finds its caches as cold: there and back the first of three
        # has two turns on end and then waits for four, and its place is worth 2 % of its time.
        under_way = [process for process in under_way if process.run_slice()]


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Put Ctrl-C off: between a process's start and its registration nobody would end it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class TrialProcess:
    """A trial's interpreter and its process group."""

    def __init__(self, trial: Trial, timeout_seconds: float) -> None:
        self._trial = trial
        self._timeout_seconds = timeout_seconds
        self._failure: TrialFailure | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_told = False
        self._heard = b""
        # A file, not a pipe: nobody reads along while the trial gets ready, and a pipe fills up.
        self._stderr = TemporaryFile()  # noqa: SIM115  # closed by __exit__

    def __enter__(self) -> "TrialProcess":
        cell = self._trial.cell
        try:
            interpreter, environment = ENGINES.load(cell.engine).launch(cell.python, cell.release)
        except ValueError as error:
            self._fail("refused", str(error))
            return self
        command = [interpreter, "-P", "-m", "harness", "trial"]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
                env=_environment(self._trial) | environment,
                start_new_session=True,
            )
        except OSError as error:
            self._fail("crashed", f"{command[0]} could not be started: {error.strerror}")
            return self
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended already: `measure` sees why
            self._process.stdin.write(msgspec.json.encode(self._trial) + b"\n")
        return self

    def __exit__(self, *_: object) -> None:
        self._stderr.close()
        if self._process is None:
            return
        self._kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    @property
    def pid(self) -> int:
        """Of the interpreter, and of its process group. ProcessLookupError where none started."""
        if self._process is None:
            raise ProcessLookupError("the trial's interpreter was not started")
        return self._process.pid

    def _kill(self) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def wait_until_ready(self) -> None:
        """Return when the trial says that it is, or has failed."""
        self._hears(READY)

    def pin(self, core: int | None) -> None:
        """Keep its main thread on a core, where there is one to keep it on."""
        if core is not None and self._process is not None and self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.sched_setaffinity(self._process.pid, {core})

    def run_slice(self) -> bool:
        """Let it run until it pauses; False where it has ended instead."""
        self._is_told = False
        self.go()
        return self._hears(PAUSED)

    def _hears(self, word: bytes) -> bool:
        """Wait until the process says a word; False where it ends before."""
        if self._failure or self._process is None:
            return False
        assert self._process.stdout is not None
        deadline = time.monotonic() + self._timeout_seconds
        self._heard = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not self._heard.endswith(word):  # a start-up file may have its say before
                if not selector.select(deadline - time.monotonic()):
                    self._time_out()
                    return False
                heard = os.read(self._process.stdout.fileno(), 1 << 16)
                if not heard:
                    return False  # it has ended: `measure` sees how
                self._heard += heard
        self._heard = b""
        return True

    def go(self) -> None:
        """Let it run."""
        if self._failure is None and self._process is not None and not self._is_told:
            assert self._process.stdin is not None
            with suppress(BrokenPipeError):  # it has ended already: `measure` sees why
                self._process.stdin.write(GO)
            self._is_told = True

    def measure(self) -> TrialResult | TrialFailure:
        """Let it run to its end; what came of it."""
        self.go()
        if self._failure is None and self._process is not None:
            try:
                out, _ = self._process.communicate(timeout=self._timeout_seconds)
            except subprocess.TimeoutExpired:
                self._time_out()
            else:
                self._stderr.seek(0)
                return self._read(self._heard + out, self._stderr.read().decode(errors="replace"))
        assert self._failure is not None
        return self._failure

    def _read(self, out: bytes, err: str) -> TrialResult | TrialFailure:
        assert self._process is not None
        status = self._process.returncode
        last_line = err.strip().splitlines()[-1].strip() if err.strip() else "it said nothing"
        if status == REFUSED:
            return self._fail("refused", last_line)
        if status < 0:
            name = signal.Signals(-status).name
            hint = ", often for want of memory" if name == "SIGKILL" else ""
            return self._fail("killed", f"its process was killed by {name}{hint}")
        if status:
            why = _last_exception(err, last_line)
            return self._fail("crashed", f"its process ended with status {status}: {why}")
        try:
            return msgspec.json.decode(out, type=TrialResult)
        except msgspec.MsgspecError as error:
            python = self._trial.cell.python
            hint = f"; is {python} a Python that has what gcbench needs?" if python else ""
            return self._fail("crashed", f"its answer cannot be read: {error}{hint}")

    def _time_out(self) -> None:
        self._kill()  # now: the next trial is to measure alone
        self._fail(
            "timed_out",
            f"no answer within {self._timeout_seconds:g} s; raise --trial-timeout or ask for less",
        )

    def _fail(self, kind: str, reason: str) -> TrialFailure:
        trial = self._trial
        fields = {"cell": trial.cell, "mode": trial.mode, "seed": trial.seed}
        self._failure = msgspec.convert(fields | {"kind": kind, "reason": reason}, TrialFailure)
        return self._failure


_LAST_FRAME = re.compile(
    r'^ +File "(.+)", line (\d+).*\n(?:^ (?! *File ").*\n|\n)*^(\w.*)$', re.MULTILINE
)
"""The frame before an exception's own line; lines of code and marks may stand between."""


def _last_exception(err: str, last_line: str) -> str:
    """The exception that the last traceback ends with, and where it was raised; the last line."""
    frames = _LAST_FRAME.findall(err)
    if not frames:
        return last_line
    file, line, exception = frames[-1]
    # Resolved: a commit's tree is known by its folder, not by the link that a trial has found.
    raised = f"{exception} ({Path(file).resolve()}:{line})"
    return raised if exception == last_line else f"{raised}; {last_line}"


def _environment(trial: Trial) -> dict[str, str]:
    """One thread for the numeric libraries, a known hash seed, no switch of the user's shell."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTHON") or name in _KEPT_VARIABLES
    }
    hash_seed = trial.seed % 2**32 if trial.mode == "timing" else 0
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return kept | threads | {"PYTHONHASHSEED": str(hash_seed)}
