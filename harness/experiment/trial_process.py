"""Interpreters that trials run in, and each trial's process: the interpreter, or a fork of it."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from socket import socketpair
from typing import TypeVar

import msgspec

from engines.registry import ENGINES
from harness.experiment.trial_answer import failure, read_answer
from harness.machine.clean_environment import clean_environment
from harness.machine.scratch import scratch_folder
from harness.running.conversation import Conversation, SaidTooMuchError, Started, TooSlowError
from harness.running.forks import forks_of
from harness.running.listener import Listener
from harness.running.stack_dump import FOLDER_VARIABLE
from harness.running.where_it_stands import where_it_stands
from harness.trial.modes import MODES
from harness.trial.spec import GO, PAUSED, READY, Trial, TrialBatch, TrialFailure, TrialResult

_Broken = tuple[str, str]
"""The kind of a failure, and its reason."""

_Heard = TypeVar("_Heard")


class TrialInterpreter:
    """One that is asked ``asked``; its process group and temporary folder go with the block.

    ``trials``: a process of each. ``timeout_seconds`` holds for each wait.
    """

    def __init__(
        self, asked: TrialBatch, timeout_seconds: float, listener: Listener | None = None
    ) -> None:
        self.trials: list[TrialProcess] = []
        self.timeout_seconds = timeout_seconds
        self.broken: _Broken | None = None
        """Why none of its trials has a result, once that is so."""
        self._asked = asked
        self._listener = listener or Listener()
        self._things = ExitStack()

    def __enter__(self) -> "TrialInterpreter":
        self._folder = self._things.enter_context(scratch_folder())
        talks: Sequence[Conversation | None]
        try:
            talks = self._forked() if self._asked.shared != "nothing" else [self._begun()]
        except (ValueError, OSError) as error:
            self.broken = "refused" if isinstance(error, ValueError) else "crashed", str(error)
            talks = [None] * len(self._asked.trials)
        pairs = zip(self._asked.trials, talks, strict=True)
        self.trials = [TrialProcess(trial, self, talk) for trial, talk in pairs]
        return self

    def __exit__(self, *_: object) -> None:
        self._things.close()

    @property
    def pid(self) -> int:
        """Of the process, and of its group."""
        return self._own.pid

    def break_off(self, talk: Conversation, kind: str, reason: str) -> _Broken:
        """End a fork, so that the next one measures alone; or all, where it has forked no such."""
        broken = kind, reason
        if not self._is_fork(talk):
            self.broken, talk = broken, self._own
        talk.end()
        return broken

    def where(self, talk: Conversation) -> str:
        """The functions that the main thread of a fork, or those of its group are in, or ""."""
        return where_it_stands(self.pid, self._folder, talk.pid if self._is_fork(talk) else 0)

    def _is_fork(self, talk: Conversation) -> bool:
        return talk is not self._own and talk.has_begun

    def _forked(self) -> list[Conversation]:
        ours, theirs = socketpair()
        self._things.enter_context(ours)
        with theirs:
            self._asked = msgspec.structs.replace(self._asked, news=theirs.fileno())
            parent = self._begun(theirs.fileno())
        forks = forks_of(parent, ours, len(self._asked.trials), self._listener)
        for fork in forks:
            self._things.callback(fork.end)
        self._things.callback(self._listener.drop, ours)
        self._things.callback(parent.end)  # before theirs: all of them are killed by one signal
        return [*forks]

    def _begun(self, *pass_fds: int) -> Conversation:
        """Raises ValueError where the engine cannot be launched, OSError where nothing starts."""
        trial = self._asked.trials[0]
        cell = trial.cell
        program, environment = ENGINES.load(cell.engine).launch(cell.python, cell.release)
        command = [*MODES[trial.mode].under, program, "-P", "-m", "harness", "trial"]
        try:
            self._own = Started(
                self._listener,
                command,
                env=_environment(trial, self._folder) | environment,
                pass_fds=pass_fds,
            )
        except OSError as error:
            raise OSError(f"{command[0]} could not be started: {error.strerror}") from error
        self._things.callback(self._own.end)
        self._own.say(msgspec.json.encode(self._asked) + b"\n")
        return self._own


class TrialProcess:
    """A trial's process: told when to measure, heard, and ended with all it started."""

    def __init__(
        self, trial: Trial, interpreter: TrialInterpreter, talk: Conversation | None
    ) -> None:
        self._trial = trial
        self._interpreter = interpreter
        self._talk = talk
        self._broken: _Broken | None = None
        self._is_ready = self._is_told = False

    @property
    def pid(self) -> int:
        """Its number. Raises ProcessLookupError where none was started."""
        if self._talk is None:
            raise ProcessLookupError("the trial's interpreter was not started")
        return self._talk.pid

    def pin(self, core: int | None) -> None:
        """Keep its main thread on a core, where there is one to keep it on."""
        if core is not None and self._failure is None:
            with suppress(ProcessLookupError):
                os.sched_setaffinity(self.pid, {core})

    def wait_until_ready(self) -> None:
        """Return when it says that it is, or has failed."""
        self._is_ready = self._is_ready or self._hears(READY)

    def go(self) -> None:
        """Let it run, at once when it is ready."""
        if self._talk and not self._is_told and self._failure is None:
            self._talk.say(GO)
            self._is_told = True

    def run_slice(self) -> bool:
        """Let it run until it pauses; False where it has ended instead."""
        self._is_told = False
        self.go()
        return self._hears(PAUSED)

    def measure(self) -> TrialResult | TrialFailure:
        """Let it run to its end; what came of it. Nothing of it runs afterwards."""
        self.wait_until_ready()
        self.go()
        answer = self._heeded(lambda talk, deadline: talk.hear_out(deadline))
        if answer is None:
            assert self._failure is not None
            return self._failure
        return read_answer(self._trial, *answer)

    @property
    def _failure(self) -> TrialFailure | None:
        broken = self._broken or self._interpreter.broken
        return failure(self._trial, *broken) if broken else None

    def _hears(self, word: bytes) -> bool:
        return bool(self._heeded(lambda talk, deadline: talk.hears(word, deadline)))

    def _heeded(self, hear: Callable[[Conversation, float], _Heard]) -> _Heard | None:
        """What is heard, or None where it has failed or has to be ended."""
        if self._talk is None or self._failure is not None:
            return None
        seconds = self._interpreter.timeout_seconds
        try:
            return hear(self._talk, time.monotonic() + seconds)
        except TooSlowError:
            stood = self._interpreter.where(self._talk)
            why = (
                f"no answer within {seconds:g} s{f', when it was in {stood}' if stood else ''}; "
                "raise --trial-timeout or ask for less"
            )
            self._broken = self._interpreter.break_off(self._talk, "timed_out", why)
        except SaidTooMuchError as error:
            self._broken = self._interpreter.break_off(self._talk, "crashed", str(error))
        return None


def _environment(trial: Trial, temporary: Path) -> dict[str, str]:
    """A clean one, with a known hash seed and a folder of its own."""
    hash_seed = trial.seed % 2**32 if trial.mode == "timing" else 0
    folder = {"TMPDIR": str(temporary), FOLDER_VARIABLE: str(temporary)}
    return clean_environment() | {"PYTHONHASHSEED": str(hash_seed)} | folder
