"""A trial's interpreter: started, told when to measure, heard, and ended with all it started."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from engines import tied_process
from engines.registry import ENGINES
from harness.experiment.tail import Tail
from harness.experiment.trial_answer import failure, read_answer
from harness.experiment.where_it_stands import where_it_stands
from harness.machine.clean_environment import clean_environment
from harness.machine.scratch import scratch_folder
from harness.machine.shared_memory import freed
from harness.trial.spec import (
    GO,
    PAUSED,
    READY,
    ForkEnd,
    Trial,
    TrialFailure,
    TrialResult,
    Trials,
    fork_files,
)
from harness.trial.stack_dump import FOLDER_VARIABLE

_MOST_SAID = 256 << 20
"""Bytes that a trial may say, its answer and its errors together; an answer is much smaller."""
_SAID_TOO_MUCH = f"it said more than {_MOST_SAID >> 20} MiB"
_LOOK_SECONDS = 0.25
"""How often it is looked at how much it has said."""


class TrialProcess:
    """A trial's interpreter, its process group and its temporary folder.

    ``others``: trials that share its engine; then each of them runs in a fork, ``at_once`` at a
    time, and the time-out holds for each answer.
    """

    def __init__(
        self,
        trial: Trial,
        timeout_seconds: float,
        others: Sequence[Trial] = (),
        at_once: int = 1,
    ) -> None:
        self._trial = trial
        self._asked = Trials(trials=[trial, *others], at_once=at_once)
        self._timeout_seconds = timeout_seconds
        self._failure: TrialFailure | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_told = False
        self._is_over = False
        self._heard = bytearray()
        self._things = ExitStack()

    def __enter__(self) -> "TrialProcess":
        cell = self._trial.cell
        try:
            interpreter, environment = ENGINES.load(cell.engine).launch(cell.python, cell.release)
        except ValueError as error:
            self._fail("refused", str(error))
            return self
        command = [interpreter, "-P", "-m", "harness", "trial"]
        # What a trial leaves in its temporary folder goes with it, however it ends.
        self._folder = folder = self._things.enter_context(scratch_folder())
        try:
            self._process = tied_process.start(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=_environment(self._trial, folder) | environment,
                start_new_session=True,
            )
        except OSError as error:
            self._fail("crashed", f"{command[0]} could not be started: {error.strerror}")
            return self
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        self._errors = Tail(self._process.stderr)
        with suppress(BrokenPipeError):  # it has ended already: `measure` sees why
            self._process.stdin.write(msgspec.json.encode(self._asked) + b"\n")
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._things.close()

    @property
    def pid(self) -> int:
        """Of the interpreter, and of its process group. ProcessLookupError where none started."""
        if self._process is None:
            raise ProcessLookupError("the trial's interpreter was not started")
        return self._process.pid

    def _end(self) -> None:
        """Kill what lives of the group; only then may the system give its number to another."""
        if self._process is None or self._is_over:
            return
        self._is_over = True
        with freed(self._process.pid), suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def wait_until_ready(self) -> None:
        """Return when the trial says that it is, or has failed."""
        self._hears(READY)

    def pin(self, core: int | None) -> None:
        """Keep its main thread on a core, where there is one to keep it on."""
        if core is not None and self._process is not None and not self._is_over:
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
        heard = self._listen(word, time.monotonic() + self._timeout_seconds)
        if heard:
            self._heard.clear()  # a start-up file may have had its say before
        return heard

    def _listen(self, word: bytes, deadline: float) -> bool:
        """Read until it says the word; False where it ends before, is too slow or says too much."""
        assert self._process is not None
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not word or not self._heard.endswith(word):
                if self._is_too_much(deadline):
                    return False
                if not selector.select(_LOOK_SECONDS):
                    # What it has started may hold the pipe open. Between two looks, which can
                    # be any time where this process is stopped, it may have answered and ended.
                    if self._has_ended() and not selector.select(0):
                        return False
                    continue
                heard = os.read(self._process.stdout.fileno(), 1 << 16)
                if not heard:
                    return False  # it has ended: `measure` sees how
                self._heard += heard
        return True

    def _is_too_much(self, deadline: float) -> bool:
        """End it where it takes too long or says too much: the next one is to measure alone."""
        if time.monotonic() > deadline:
            stood = where_it_stands(self.pid, self._folder)
            why = (
                f"no answer within {self._timeout_seconds:g} s"
                f"{f', when it was in {stood}' if stood else ''}; raise --trial-timeout or ask for "
                "less"
            )
            self._end()
            self._fail("timed_out", why)
        elif len(self._heard) + self._errors.num_bytes > _MOST_SAID:
            self._end()
            self._fail("crashed", _SAID_TOO_MUCH)
        return self._failure is not None

    def go(self) -> None:
        """Let it run."""
        if self._failure is None and self._process is not None and not self._is_told:
            assert self._process.stdin is not None
            with suppress(BrokenPipeError):  # it has ended already: `measure` sees why
                self._process.stdin.write(GO)
            self._is_told = True

    def measure(self) -> TrialResult | TrialFailure:
        """Let it run to its end; what came of it. Nothing of it runs afterwards."""
        self.go()
        if self._failure is None and self._process is not None:
            deadline = time.monotonic() + self._timeout_seconds
            self._listen(b"", deadline)
            if self._failure is None:
                self._await_end(deadline)
        if self._failure is not None:
            return self._failure
        assert self._process is not None
        status, heard = self._process.returncode, bytes(self._heard)
        return read_answer(self._trial, status, heard, self._errors.text())

    def measure_each(self) -> Iterator[TrialResult | TrialFailure]:
        """As `measure`, of each of its trials in their order."""
        if len(self._asked.trials) == 1:
            yield self.measure()
            return
        self.go()
        told: dict[int, TrialResult | TrialFailure] = {}
        for index, trial in enumerate(self._asked.trials):
            while index not in told and (ended := self._ended_forks()):
                told |= {each.index: self._of_fork(each) for each in ended}
            if index not in told:  # the interpreter itself has failed
                self._failure = self._failure or self._as_failure(self.measure())
                fields = {"cell": trial.cell, "mode": trial.mode, "seed": trial.seed}
                told[index] = msgspec.structs.replace(self._failure, **fields)
            yield told[index]

    def _as_failure(self, whole: TrialResult | TrialFailure) -> TrialFailure:
        if isinstance(whole, TrialFailure):
            return whole
        return failure(self._trial, "crashed", "it did not say how its forks ended")

    def _ended_forks(self) -> list[ForkEnd]:
        """The next to end; none where their interpreter ends before."""
        if self._failure or self._process is None:
            return []
        if not self._listen(b"\n", time.monotonic() + self._timeout_seconds):
            return []
        lines = self._heard.splitlines()
        self._heard.clear()
        return [msgspec.json.decode(line, type=ForkEnd) for line in lines]

    def _of_fork(self, ended: ForkEnd) -> TrialResult | TrialFailure:
        trial = self._asked.trials[ended.index]
        files = [Path(path) for path in fork_files(str(self._folder), ended.index)]
        there = [path for path in files if path.exists()]  # it may be killed before it makes them
        if sum(path.stat().st_size for path in there) > _MOST_SAID:
            return failure(trial, "crashed", _SAID_TOO_MUCH)
        said, errors = (path.read_bytes() if path in there else b"" for path in files)
        return read_answer(trial, ended.status, said, errors.decode(errors="replace"))

    def _has_ended(self) -> bool:
        """Whether it has; its status is left to be asked for until its group is gone."""
        how = os.WEXITED | os.WNOWAIT | os.WNOHANG
        return os.waitid(os.P_PID, self.pid, how) is not None

    def _await_end(self, deadline: float) -> None:
        delay = 0.0005
        while not self._has_ended():
            if self._is_too_much(deadline):
                return
            time.sleep(delay)
            delay = min(2 * delay, 0.05)
        self._end()

    def _fail(self, kind: str, reason: str) -> None:
        self._failure = failure(self._trial, kind, reason)


def _environment(trial: Trial, temporary: Path) -> dict[str, str]:
    """A clean one, with a known hash seed and a folder of its own."""
    hash_seed = trial.seed % 2**32 if trial.mode == "timing" else 0
    folder = {"TMPDIR": str(temporary), FOLDER_VARIABLE: str(temporary)}
    return clean_environment() | {"PYTHONHASHSEED": str(hash_seed)} | folder
