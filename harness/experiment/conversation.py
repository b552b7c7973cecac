"""What is said with a process of trials: words one way and the other, in time, until it ends."""

import os
import selectors
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

import msgspec

from harness.experiment.interpreter import OwnInterpreter, TrialInterpreter
from harness.experiment.tail import Tail
from harness.experiment.trial_answer import failure, read_answer
from harness.machine.scratch import scratch_folder
from harness.trial.spec import GO, READY, Trial, TrialBatch, TrialFailure

MOST_SAID = 256 << 20
"""Bytes that a trial may say, its answer and its errors together; an answer is much smaller."""
SAID_TOO_MUCH = f"it said more than {MOST_SAID >> 20} MiB"
_LOOK_SECONDS = 0.25
"""How often it is looked at how much it has said."""


class Conversation:
    """With one process, about ``trial``; ``failure`` is why there is no result, once there is one.

    ``timeout_seconds`` holds for each wait.
    """

    def __init__(self, trial: Trial, timeout_seconds: float) -> None:
        self.failure: TrialFailure | None = None
        self._trial = trial
        self._timeout_seconds = timeout_seconds
        self._interpreter: TrialInterpreter | None = None
        self._status: int | None = None
        self._is_told = False
        self._heard = bytearray()
        self._things = ExitStack()

    def __exit__(self, *_: object) -> None:
        self._things.close()

    def _begin_own(self, asked: TrialBatch, pass_fds: Sequence[int] = ()) -> None:
        """Start an interpreter and ask it. What it leaves in its temporary folder goes with it."""
        self._folder = folder = self._things.enter_context(scratch_folder())
        self._begin(lambda: OwnInterpreter(self._trial, folder, pass_fds), asked)

    def _begin(
        self, start: Callable[[], TrialInterpreter], asked: TrialBatch | None = None
    ) -> None:
        """Start the process, which ends with this, and say what is asked, if it does not know."""
        self._things.callback(self.end)
        try:
            self._interpreter = start()
        except ValueError as error:
            self._fail("refused", str(error))
        except OSError as error:
            self._fail("crashed", str(error))
        else:
            self._stdin, self._stdout, errors = self._interpreter.streams
            self._errors = Tail(errors)
            if asked:
                self._say(msgspec.json.encode(asked) + b"\n")

    @property
    def pid(self) -> int:
        """Of the process. ProcessLookupError where none started."""
        if self._interpreter is None:
            raise ProcessLookupError("the trial's interpreter was not started")
        return self._interpreter.pid

    def _say(self, words: bytes) -> None:
        with suppress(BrokenPipeError):  # it has ended already: who listens sees why
            self._stdin.write(words)

    def go(self) -> None:
        """Let it run."""
        if self._is_alive and not self._is_told:
            self._say(GO)
            self._is_told = True

    @property
    def _is_alive(self) -> bool:
        return self.failure is None and self._interpreter is not None

    def wait_until_ready(self) -> None:
        """Return when it says that it is, or has failed."""
        self._hears(READY)

    def _hears(self, word: bytes) -> bool:
        """Wait until the process says a word; False where it ends before."""
        if not self._is_alive:
            return False
        heard = self._listen(word, time.monotonic() + self._timeout_seconds)
        if heard:
            self._heard.clear()  # a start-up file may have had its say before
        return heard

    def _listen(self, word: bytes, deadline: float) -> bool:
        """Read until it says the word; False where it ends before, is too slow or says too much."""
        assert self._interpreter is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            while not word or not self._heard.endswith(word):
                if self._is_too_much(deadline):
                    return False
                if not selector.select(_LOOK_SECONDS):
                    # What it has started may hold the pipe open. Between two looks, which can
                    # be any time where this process is stopped, it may have answered and ended.
                    if self._interpreter.has_ended() and not selector.select(0):
                        return False
                    continue
                heard = os.read(self._stdout.fileno(), 1 << 16)
                if not heard:
                    return False  # it has ended: who asks for its status sees how
                self._heard += heard
        return True

    def _is_too_much(self, deadline: float) -> bool:
        """End it where it takes too long or says too much: the next one is to measure alone."""
        assert self._interpreter is not None
        if time.monotonic() > deadline:
            stood = self._interpreter.where()
            why = (
                f"no answer within {self._timeout_seconds:g} s"
                f"{f', when it was in {stood}' if stood else ''}; raise --trial-timeout or ask for "
                "less"
            )
            self.end()
            self._fail("timed_out", why)
        elif len(self._heard) + self._errors.num_bytes > MOST_SAID:
            self.end()
            self._fail("crashed", SAID_TOO_MUCH)
        return self.failure is not None

    def _end_of_it(self) -> tuple[int, bytes, str] | None:
        """Hear it to its end: its status, its answer and its errors. None where it has failed."""
        assert self._interpreter is not None
        deadline = time.monotonic() + self._timeout_seconds
        self._listen(b"", deadline)
        delay = 0.0005
        while self.failure is None and not self._interpreter.has_ended():
            if not self._is_too_much(deadline):
                time.sleep(delay)
                delay = min(2 * delay, 0.05)
        status = self.end()
        return None if self.failure else (status, bytes(self._heard), self._errors.text())

    def _as_failure(self, without: str) -> TrialFailure:
        """Why it has ended, where it should not have; ``without`` where it does not say."""
        ended = self._end_of_it()
        found = read_answer(self._trial, *ended) if ended else self.failure
        if isinstance(found, TrialFailure):
            return found
        return failure(self._trial, "crashed", without)

    def end(self) -> int:
        """Kill what lives of it; its exit status, 0 where none was started."""
        if self._interpreter is None:
            return 0
        if self._status is None:
            self._status = self._interpreter.end()
            self._stdin.close()
            self._stdout.close()
            self._errors.wait()
        return self._status

    def _fail(self, kind: str, reason: str) -> None:
        self.failure = failure(self._trial, kind, reason)
