"""Trials that count and share an interpreter, or an engine that stands in it: forks of it."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from harness.experiment.conversation import MOST_SAID, SAID_TOO_MUCH, Conversation
from harness.experiment.grid import traits
from harness.experiment.trial_answer import as_failure, failure, read_answer
from harness.trial.spec import ForkNews, Trial, TrialBatch, TrialFailure, TrialResult, fork_files


class CountingForks(Conversation):
    """An interpreter of which each trial takes a fork, ``at_once`` at a time.

    The time-out holds for each answer.
    """

    def __init__(self, trials: Sequence[Trial], timeout_seconds: float, at_once: int) -> None:
        super().__init__(trials[0], timeout_seconds)
        engine = traits(trials[0].cell)
        self._asked = TrialBatch(
            trials=list(trials),
            shared="interpreter" if engine.can_fork else "engine",
            preload=engine.preload,
            at_once=at_once,
        )

    def __enter__(self) -> "CountingForks":
        self._begin_own(self._asked)
        return self

    def measure_each(self) -> Iterator[TrialResult | TrialFailure]:
        """Let them run; what came of each, in their order."""
        self.go()
        told: dict[int, TrialResult | TrialFailure] = {}
        for index, trial in enumerate(self._asked.trials):
            while index not in told and (news := self._news()):
                told |= {
                    each.index: self._of_fork(each.index, each.status)
                    for each in news
                    if each.status is not None
                }
            if index not in told:  # the interpreter itself has failed
                told[index] = as_failure(trial, self._why_it_ended())
            yield told[index]

    def _why_it_ended(self) -> TrialFailure:
        if self.failure is None:
            self.failure = self._as_failure("it did not say how its forks ended")
        return self.failure

    def _news(self) -> list[ForkNews]:
        """The next; none where the interpreter ends before."""
        if not self._is_alive:
            return []
        if not self._listen(b"\n", time.monotonic() + self._timeout_seconds):
            return []
        lines = self._heard.splitlines()
        self._heard.clear()
        return [msgspec.json.decode(line, type=ForkNews) for line in lines]

    def _of_fork(self, index: int, status: int) -> TrialResult | TrialFailure:
        trial = self._asked.trials[index]
        files = [Path(path) for path in fork_files(str(self._folder), index)]
        there = [path for path in files if path.exists()]  # it may be killed before it makes them
        if sum(path.stat().st_size for path in there) > MOST_SAID:
            return failure(trial, "crashed", SAID_TOO_MUCH)
        said, errors = (path.read_bytes() if path in there else b"" for path in files)
        return read_answer(trial, status, said, errors.decode(errors="replace"))
