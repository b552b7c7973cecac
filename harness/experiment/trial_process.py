"""A trial's process: told when to measure, heard, and ended with all it started."""

import os
from collections.abc import Iterator
from contextlib import suppress

from harness.experiment.conversation import Conversation
from harness.experiment.interpreter import TrialInterpreter
from harness.experiment.trial_answer import read_answer
from harness.trial.spec import PAUSED, Trial, TrialBatch, TrialFailure, TrialResult


class TrialProcess(Conversation):
    """A trial's interpreter, its process group and its temporary folder.

    ``begun``: an interpreter that knows the trial already; otherwise it has one of its own.
    """

    def __init__(
        self, trial: Trial, timeout_seconds: float, begun: TrialInterpreter | None = None
    ) -> None:
        super().__init__(trial, timeout_seconds)
        self._begun = begun

    def __enter__(self) -> "TrialProcess":
        if begun := self._begun:
            self._begin(lambda: begun)
        else:
            self._begin_own(TrialBatch(trials=[self._trial]))
        return self

    def pin(self, core: int | None) -> None:
        """Keep its main thread on a core, where there is one to keep it on."""
        if core is not None and self._is_alive and self._status is None:
            with suppress(ProcessLookupError):
                os.sched_setaffinity(self.pid, {core})

    def run_slice(self) -> bool:
        """Let it run until it pauses; False where it has ended instead."""
        self._is_told = False
        self.go()
        return self._hears(PAUSED)

    def measure(self) -> TrialResult | TrialFailure:
        """Let it run to its end; what came of it. Nothing of it runs afterwards."""
        self.go()
        ended = self._end_of_it() if self._is_alive else None
        if ended is None:
            assert self.failure is not None
            return self.failure
        return read_answer(self._trial, *ended)

    def measure_each(self) -> Iterator[TrialResult | TrialFailure]:
        """As `measure`."""
        yield self.measure()
