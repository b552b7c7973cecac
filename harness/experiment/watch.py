"""Watches what else a machine does from before an experiment's trials to their end."""

from collections.abc import Iterable

import numpy as np

from harness.experiment.executor import TrialOutcome
from harness.machine.other_work import Counters, OtherWork, Surroundings, read_counters, since
from harness.trial.spec import TrialResult

_BEFORE_SECONDS = 0.5


class SurroundingsWatch:
    """`look` before the trials, `begin` with them, and `add` what came of them."""

    def __init__(self) -> None:
        self._made = read_counters()
        self._begun: Counters | None = None
        self._before: OtherWork | None = None
        self._waited = list[float]()

    @property
    def has_looked(self) -> bool:
        """Whether it is known what others did before the trials."""
        return self._before is not None

    def look(self, before: OtherWork | None = None) -> None:
        """See what others have done so far; ``before``: what was seen by who has looked already."""
        self._before = before or since(self._made, _BEFORE_SECONDS)

    def begin(self) -> None:
        """Trials run from now on; what was begun goes on."""
        self._begun = self._begun or read_counters()

    def add(self, outcomes: Iterable[TrialOutcome]) -> None:
        """Note how long trials have waited for their core."""
        self._waited += [
            outcome.waited_share
            for outcome in outcomes
            if isinstance(outcome, TrialResult) and outcome.waited_share is not None
        ]

    def surroundings(self) -> Surroundings | None:
        """What was seen until now; None where no trial was to run."""
        if self._before is None or self._begun is None:
            return None
        waited = float(np.median(self._waited)) if self._waited else None
        return Surroundings(before=self._before, during=since(self._begun), waited=waited)
