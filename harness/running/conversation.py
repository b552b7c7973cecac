"""What is said with a process: words one way and the other, in time, until it ends."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Any, NamedTuple

from harness.running.group import Group
from harness.running.listener import Listener
from harness.running.tail import Tail

_MOST_SAID = 256 << 20
"""Bytes that a process may say, its answer and its errors together; an answer is much smaller."""
_LOOK_SECONDS = 0.25
"""How often it is looked at how much it has said, and whether it has ended with its pipe open."""
_END_SECONDS = 0.002
"""How often it is looked at whether one has ended that has said all."""


class TooSlowError(RuntimeError):
    """It has not said in time what was waited for; it lives on."""


class SaidTooMuchError(RuntimeError):
    """It talks without end; it lives on."""

    def __init__(self) -> None:
        super().__init__(f"it said more than {_MOST_SAID >> 20} MiB")


class Pipes(NamedTuple):
    """Our ends of a process's standard streams: where it reads, answers, says what is wrong."""

    asked: IO[bytes]
    said: IO[bytes]
    wrong: IO[bytes]


class ProcessEnd(NamedTuple):
    """How a process ended, what it had said that nobody waited for, and the end of its errors."""

    status: int
    said: bytes
    errors: str


class Conversation(ABC):
    """With one process. What it is told before it has begun it hears when it begins."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._pipes: Pipes | None = None
        self._errors: Tail | None = None
        self._unsaid = b""
        self._heard = bytearray()
        self._searched = 0
        self._is_open = True
        self._status: int | None = None

    @property
    @abstractmethod
    def pid(self) -> int:
        """Its number. Raises ProcessLookupError where it has not begun."""

    @abstractmethod
    def has_ended(self) -> bool:
        """Whether it has, or will never begin."""

    @abstractmethod
    def _end(self) -> int:
        """Kill what lives of it; its exit status, negative for a signal's number."""

    def _begin(self, pipes: Pipes) -> None:
        self._pipes, self._errors = pipes, Tail(pipes.wrong)
        self._listener.add(pipes.said, self._take)
        self.say(self._unsaid)

    @property
    def has_begun(self) -> bool:
        """Whether there has been a process."""
        return self._pipes is not None

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to wait for but its end."""
        return not self._is_open or self.has_ended()

    def say(self, words: bytes) -> None:
        """Tell it something; that it has ended shows elsewhere."""
        if self._pipes is None:
            self._unsaid += words
            return
        with suppress(BrokenPipeError):
            if self._is_open:
                self._pipes.asked.write(words)

    def hang_up(self) -> None:
        """End its standard input."""
        if self._pipes is not None:
            self._pipes.asked.close()

    def hears(self, word: bytes, deadline: float) -> bool:
        """Wait until it says a word, whatever it says before; False where it ends without.

        ``deadline`` is of `time.monotonic`. Raises TooSlowError and SaidTooMuchError.
        """
        if found := self._listen(lambda: self._finds(word), deadline):
            del self._heard[: self._searched]
            self._searched = 0
        return found

    def hear_out(self, deadline: float) -> ProcessEnd:
        """Hear it to its end; afterwards nothing of it is left. Raises as `hears`."""
        self._listen(lambda: False, deadline)
        while not self.has_ended():
            self._check(deadline)
            self._listener.listen(_END_SECONDS)
        status = self.end()
        return ProcessEnd(status, bytes(self._heard), self._errors.text() if self._errors else "")

    def end(self) -> int:
        """Kill what lives of it; its exit status, negative for a signal's number."""
        if self._status is None:
            self._status = self._end()
            if self._pipes is not None and self._errors is not None:
                self._close(self._pipes)
                self._errors.wait()
        return self._status

    def _listen(self, is_said: Callable[[], bool], deadline: float) -> bool:
        while not is_said():
            self._check(deadline)
            if not self._is_open:
                return False
            # What it has started may hold the pipe open. What it said before it ended is there.
            known, has_ended = len(self._heard), self.has_ended()
            self._listener.listen(0 if has_ended else _LOOK_SECONDS)
            if has_ended and len(self._heard) == known:
                return False
        return True

    def _finds(self, word: bytes) -> bool:
        place = self._heard.find(word, self._searched)
        # A word may come in two pieces; much noise is searched once.
        self._searched = place + len(word) if place >= 0 else max(0, len(self._heard) - len(word))
        return place >= 0

    def _check(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise TooSlowError
        if len(self._heard) + (self._errors.num_bytes if self._errors else 0) > _MOST_SAID:
            raise SaidTooMuchError

    def _close(self, pipes: Pipes) -> None:
        if self._is_open:
            self._is_open = False
            self._listener.drop(pipes.said)
            pipes.asked.close()
            pipes.said.close()

    def _take(self) -> None:
        assert self._pipes is not None
        heard = os.read(self._pipes.said.fileno(), 1 << 16)
        self._heard += heard
        if not heard:
            self._close(self._pipes)  # many may have ended that nobody has asked for yet


class Started(Conversation):
    """With a process that is started for it, and all that this one starts.

    Options are those of `subprocess.Popen`. Raises OSError where it cannot be started.
    """

    def __init__(self, listener: Listener, command: Sequence[str], **options: Any) -> None:
        super().__init__(listener)
        self._group = Group(command, stdin=-1, stdout=-1, stderr=-1, bufsize=0, **options)
        process = self._group.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._begin(Pipes(process.stdin, process.stdout, process.stderr))

    @property
    def pid(self) -> int:
        """Of the process, and of its group."""
        return self._group.pid

    def has_ended(self) -> bool:
        """Whether the process has."""
        return self._group.has_ended()

    def _end(self) -> int:
        return self._group.end()
