"""Runs a plan: interleaved rounds, resumable, until the rounds or the precision is reached."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from harness.experiment import ExperimentResult
from harness.plan import Plan, Turn, exact_turns, timing_round
from harness.store import RunStore, TrialKey, trial_key
from harness.trial import Cell, Trial, TrialFailure, TrialResult

Outcome = TrialResult | TrialFailure
Outcomes = dict[TrialKey, Outcome]
Measure = Callable[[Trial], Outcome]

_ATTEMPTS = 3
"""Times a trial is tried that the machine, not the cell, has spoiled."""
_GIVE_UP_AFTER = 2
"""Failures of a cell after which its remaining trials are left out."""


@dataclass(slots=True)
class Rounds:
    """One experiment under way. ``on_trial(turn, outcome, seconds)`` is told of each new trial.

    ``measure`` runs a trial; in `compare` it is `isolate`, in tests a simulation.
    """

    plan: Plan
    store: RunStore
    measure: Measure
    on_trial: Callable[[Turn, Outcome, float], None]
    outcomes: Outcomes = field(default_factory=dict)
    repeated: int = 0
    _failures: Counter[Cell] = field(default_factory=Counter)

    def run(self, summarise: "Callable[[Outcomes], ExperimentResult]", precise: "Precision") -> None:
        """Run what is not stored yet. KeyboardInterrupt leaves all finished trials stored."""
        self.outcomes.update(self.store.load_trials())
        if not self._is_complete():
            # The first trial after idle is slow (45 % here), whichever cell it is: not kept.
            self.measure(self._trial(next(timing_round(self.plan, 1))))
        self._take(exact_turns(self.plan))
        number = 0
        while number < self.plan.rounds or precise.wants_more(lambda: summarise(self.outcomes)):
            number += 1
            if not self._take(timing_round(self.plan, number)) and number > self.plan.rounds:
                return

    def _is_complete(self) -> bool:
        last = timing_round(self.plan, self.plan.rounds)
        return all(_key(turn) in self.outcomes for turn in last)

    def _take(self, turns: Iterable[Turn]) -> bool:
        """Run the turns that are not stored; whether any cell is still in the running."""
        alive = False
        for turn in turns:
            key = _key(turn)
            known = self.outcomes.get(key)
            if isinstance(known, TrialResult):
                alive = True
                continue
            if self._failures[turn.cell] >= _GIVE_UP_AFTER:
                continue
            began = time.monotonic()
            outcome = self._attempt(turn)
            if isinstance(outcome, TrialFailure):
                self._failures[turn.cell] += 1
            else:
                alive = True
            self.outcomes[key] = outcome
            self.store.save_trial(key, outcome)
            self.on_trial(turn, outcome, time.monotonic() - began)
        return alive

    def _attempt(self, turn: Turn) -> Outcome:
        outcome = self.measure(self._trial(turn))
        for _ in range(_ATTEMPTS - 1):
            if not (isinstance(outcome, TrialResult) and outcome.invalid):
                break
            self.repeated += 1
            outcome = self.measure(self._trial(turn))
        return outcome

    def _trial(self, turn: Turn) -> Trial:
        schedule = self.plan.schedules[turn.cell.workload]
        rows = self.store.rows_path(_key(turn)) if turn.mode == "timing" else ""
        return Trial(
            cell=turn.cell,
            schedule_path=str(self.store.schedule_path(schedule)),
            schedule_sha256=schedule,
            mode=turn.mode,
            seed=turn.seed,
            max_steps=turn.max_steps,
            rows_path=str(rows),
        )


@dataclass(slots=True)
class Precision:
    """Goes on past the planned rounds until every interval is narrow or the time is spent.

    ``half_width`` relative (0.01 is 1 %), 0 for never; ``budget_seconds`` from the first asking.
    """

    half_width: float
    budget_seconds: float
    _deadline: float = 0.0

    def wants_more(self, summarise: Callable[[], ExperimentResult]) -> bool:
        """Whether another round is due."""
        if not self.half_width:
            return False
        now = time.monotonic()
        self._deadline = self._deadline or now + self.budget_seconds
        if now >= self._deadline:
            return False
        return any(
            (comparison.ci95[1] - comparison.ci95[0]) / 2 > self.half_width * comparison.ratio
            for comparison in summarise().comparisons
        )


def _key(turn: Turn) -> TrialKey:
    return trial_key(turn.round, turn.index, turn.cell, turn.mode)
