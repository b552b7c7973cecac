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
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from engines import tied_process
from engines.registry import ENGINES
from harness.axes import Cell
from harness.experiment.executor import Executor
from harness.experiment.grid import is_alone
from harness.experiment.plan import engine_shared
from harness.experiment.tail import Tail
from harness.experiment.where_it_stands import where_it_stands
from harness.machine.clean_environment import clean_environment
from harness.machine.describe import cores_usable
from harness.machine.interrupts import held_interrupts
from harness.machine.scratch import scratch_folder
from harness.machine.shared_memory import freed
from harness.trial.spec import (
    GO,
    PAUSED,
    READY,
    REFUSED,
    ForkEnd,
    Trial,
    TrialFailure,
    TrialResult,
    Trials,
    fork_files,
)
from harness.trial.stack_dump import FOLDER_VARIABLE

_PREPARED_AT_ONCE = 4
"""Of interpreters that take no turns, so many get ready side by side at most: each holds torch and
a heap. How many take turns the plan says."""

_MOST_SAID = 256 << 20
"""Bytes that a trial may say, its answer and its errors together; an answer is much smaller."""
_SAID_TOO_MUCH = f"it said more than {_MOST_SAID >> 20} MiB"
_LONGEST_LINE = 500
_LOOK_SECONDS = 0.25
"""How often it is looked at how much it has said."""


@dataclass(frozen=True, slots=True)
class LocalExecutor(Executor):
    """This machine. ``timeout_seconds`` holds for a preparation and for a measurement."""

    timeout_seconds: float

    def run(self, trials: Sequence[Trial]) -> Iterator[TrialResult | TrialFailure]:
        """Each trial's result, or why there is none, in order; afterwards no process is left.

        A time-out, a crash and a kill are answers like any other; Ctrl-C ends all trials and goes
        on up. Where none of the trials is timed they run side by side: a count does not mind. Those
        that can have an engine together run in forks of one interpreter.
        Trials with slices take turns, so that a machine that is slow for a moment is so for all.
        """
        are_counts = all(trial.mode != "timing" for trial in trials)
        alone = [[index] for index in range(len(trials))]
        groups = _by_engine(trials) if are_counts else alone
        at_once = max(1, cores_usable() // max(1, len(groups)))
        with ExitStack() as stack:
            with held_interrupts():  # between its start and its registration nobody would end it
                begun = []
                for group in groups:
                    first, *others = (trials[index] for index in group)
                    process = TrialProcess(first, self.timeout_seconds, others, at_once)
                    begun.append(stack.enter_context(process))
            for process in begun:
                process.wait_until_ready()
            if are_counts:
                for process in begun:
                    process.go()
            elif any(trial.slice_steps for trial in trials):
                _take_turns(begun)
            answers: dict[int, Iterator[TrialResult | TrialFailure]] = {}
            for process, group in zip(begun, groups, strict=True):
                answers |= dict.fromkeys(group, process.measure_each())
            for index in range(len(trials)):
                yield next(answers[index])

    def batch_size(self, cells: Iterable[Cell]) -> int:
        """Trials that get ready side by side: one where a cell takes all of its device."""
        return 1 if any(map(is_alone, cells)) else min(cores_usable(), _PREPARED_AT_ONCE)


def _by_engine(trials: Sequence[Trial]) -> list[list[int]]:
    """The numbers of the trials in their order, those together that can have an engine together."""
    groups: dict[object, list[int]] = {}
    for index, trial in enumerate(trials):
        shared = engine_shared(trial.cell, trial.mode)
        key = (shared, trial.schedule_path, trial.schedule_sha256) if shared else index
        groups.setdefault(key, []).append(index)
    return list(groups.values())


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
        return self._read(self._trial, status, heard, self._errors.text())

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
        return _failure(self._trial, "crashed", "it did not say how its forks ended")

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
            return _failure(trial, "crashed", _SAID_TOO_MUCH)
        said, errors = (path.read_bytes() if path in there else b"" for path in files)
        return self._read(trial, ended.status, said, errors.decode(errors="replace"))

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

    def _read(self, trial: Trial, status: int, out: bytes, err: str) -> TrialResult | TrialFailure:
        last_line = err.strip().splitlines()[-1].strip()[:_LONGEST_LINE] if err.strip() else ""
        last_line = last_line or "it said nothing"
        if status == REFUSED:
            return _failure(trial, "refused", last_line)
        if status < 0:
            name = signal.Signals(-status).name
            hint = ", often for want of memory" if name == "SIGKILL" else ""
            return _failure(trial, "killed", f"its process was killed by {name}{hint}")
        if status:
            return _broken(trial, status, err, last_line)
        try:
            return msgspec.json.decode(out, type=TrialResult)
        except msgspec.MsgspecError as error:
            python = trial.cell.python
            hint = f"; is {python} a Python that has what gcbench needs?" if python else ""
            return _failure(trial, "crashed", f"its answer cannot be read: {error}{hint}")

    def _fail(self, kind: str, reason: str) -> None:
        self._failure = _failure(self._trial, kind, reason)


def _broken(trial: Trial, status: int, err: str, last_line: str) -> TrialFailure:
    why = _last_exception(err, last_line)
    if lacking := _LACKING.search(why):
        return _failure(trial, "refused", _other_engines(*lacking.groups(default="")))
    if status == _NO_COMMAND and (python := trial.cell.python):
        first_line = (err.strip() or last_line).splitlines()[0]
        return _failure(trial, "refused", f"--python {python}: does not run: {first_line}")
    return _failure(trial, "crashed", f"its process ended with status {status}: {why}")


def _failure(trial: Trial, kind: str, reason: str) -> TrialFailure:
    fields = {"cell": trial.cell, "mode": trial.mode, "seed": trial.seed}
    return msgspec.convert(fields | {"kind": kind, "reason": reason}, TrialFailure)


_NO_COMMAND = 127
"""Exit status of what stands for a program that is not there, such as a shim of pyenv's."""

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


_LACKING = re.compile(
    r"(?:ImportError: cannot import name '(\w+)' from '(engines[\w.]*)'"
    r"|ModuleNotFoundError: No module named '(engines[\w.]*)'"
    r"|AttributeError: '(\w*Engine)' object has no attribute '(\w+)').*/harness/[\w/]+\.py:\d+\)$"
)
"""What the harness, which is always ours, asks for in vain of the engines of another tree."""


def _other_engines(name: str, module: str, missing_module: str, of: str, attribute: str) -> str:
    lacks = missing_module or ".".join(filter(None, (module, name, of, attribute)))
    return (
        f"its engines lack {lacks}, which this gcbench needs; measure it with the gcbench of that "
        "commit"
    )


def _environment(trial: Trial, temporary: Path) -> dict[str, str]:
    """A clean one, with a known hash seed and a folder of its own."""
    hash_seed = trial.seed % 2**32 if trial.mode == "timing" else 0
    folder = {"TMPDIR": str(temporary), FOLDER_VARIABLE: str(temporary)}
    return clean_environment() | {"PYTHONHASHSEED": str(hash_seed)} | folder
