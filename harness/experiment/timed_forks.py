"""Trials that take turns, as forks of one interpreter, which imports and fills a heap once.

Each fork builds its own engine and is a process of its own. What an interpreter draws, its hash
seed and where its memory lies, is the same for trials that take turns, and another for the next.
"""

import os
import selectors
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

import msgspec

from harness.experiment.conversation import Conversation
from harness.experiment.grid import traits
from harness.experiment.trial_answer import as_failure
from harness.experiment.trial_process import TrialProcess
from harness.experiment.where_it_stands import where_it_stands
from harness.trial.spec import Channel, ForkNews, Trial, TrialBatch

_KILLED = -int(signal.SIGKILL)
_GRACE_SECONDS = 1.0


class TimedForks(Conversation):
    """The interpreter, its process group and its temporary folder.

    ``trials``: those it was asked for, in their order, each in one of ``forks``.
    """

    def __init__(self, trials: Sequence[Trial], timeout_seconds: float) -> None:
        super().__init__(trials[0], timeout_seconds)
        self._asked = trials
        self.forks: list[Fork] = []
        self.trials: list[TrialProcess] = []

    def __enter__(self) -> "TimedForks":
        channels = [_open_channel() for _ in self._asked]
        theirs = [end for channel, _ in channels for end in channel]
        asked = TrialBatch(
            trials=list(self._asked),
            shared="interpreter",
            preload=traits(self._asked[0].cell).preload,
            channels=[channel for channel, _ in channels],
        )
        try:
            self._begin_own(asked, theirs)
        finally:
            for end in theirs:
                os.close(end)
        for trial, (_, streams) in zip(self._asked, channels, strict=True):
            self.forks.append(fork := Fork(self, streams))
            process = TrialProcess(trial, self._timeout_seconds, fork)
            self.trials.append(self._things.enter_context(process))
        return self

    def wait_until_forked(self) -> None:
        """Return when each trial has its process, or none will have one."""
        deadline = time.monotonic() + self._timeout_seconds
        while self._is_alive and any(not fork.number for fork in self.forks):
            if self._listen(b"\n", deadline):
                self._take_news()
            else:
                self.failure = self.failure or self._as_failure("it made no forks")
        if self.failure is not None:
            for trial, process in zip(self._asked, self.trials, strict=True):
                process.failure = as_failure(trial, self.failure)

    def look(self, wait_seconds: float = 0.0) -> bool:
        """Take what it has said of its forks, if anything; False where it will say no more."""
        if self._interpreter is None or self._status is not None:
            return False
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            while selector.select(wait_seconds):
                heard = os.read(self._stdout.fileno(), 1 << 16)
                if not heard:
                    return False
                self._heard += heard
                if self._heard.endswith(b"\n"):
                    self._take_news()
                    wait_seconds = 0.0
        return True

    def _take_news(self) -> None:
        for line in self._heard.splitlines():
            news = msgspec.json.decode(line, type=ForkNews)
            fork = self.forks[news.index]
            fork.number, fork.status = news.pid, news.status
        self._heard.clear()

    def where(self, pid: int) -> str:
        """The functions that the main thread of a fork is in, or ""."""
        return where_it_stands(self.pid, self._folder, pid)


class Fork:
    """One of them. ``number``: its process's, 0 until there is one; ``status``: once it ends, which
    its parent says.
    """

    def __init__(self, parent: TimedForks, streams: tuple[IO[bytes], IO[bytes], IO[bytes]]) -> None:
        self.number = 0
        self.status: int | None = None
        self.streams = streams
        self._parent = parent

    @property
    def pid(self) -> int:
        """Its number. Raises ProcessLookupError where none was started."""
        if not self.number:
            raise ProcessLookupError("the trial was not forked")
        return self.number

    def has_ended(self) -> bool:
        """Whether it has, or nobody is left who would say so."""
        return not self._parent.look() or self.status is not None

    def end(self) -> int:
        """Kill it if it lives; its exit status."""
        self._parent.look()
        if self.number and self.status is None:
            with suppress(ProcessLookupError):
                os.kill(self.number, signal.SIGKILL)
            # Nobody needs to wait for more than its end, and its parent may be stopped.
            deadline = time.monotonic() + _GRACE_SECONDS
            left = _GRACE_SECONDS
            while self.status is None and left > 0 and self._parent.look(left):
                left = deadline - time.monotonic()
        return _KILLED if self.status is None else self.status

    def where(self) -> str:
        """The functions that its main thread is in, or ""."""
        return self._parent.where(self.number)


def _open_channel() -> tuple[Channel, tuple[IO[bytes], IO[bytes], IO[bytes]]]:
    """A fork's ends of three pipes, and ours of the same."""
    (asked, ask), (hear, said), (read, wrong) = os.pipe(), os.pipe(), os.pipe()
    ours = os.fdopen(ask, "wb", 0), os.fdopen(hear, "rb", 0), os.fdopen(read, "rb", 0)
    return Channel(asked, said, wrong), ours
