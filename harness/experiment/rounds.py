"""Runs a plan: interleaved rounds, resumable, until the rounds or the precision is reached."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from harness.axes import Cell
from harness.experiment.plan import Plan, Turn, engine_shared, exact_turns, timing_round
from harness.experiment.store import RunStore, TrialKey, trial_key
from harness.statistics.paired_ratio import Estimate, is_precise
from harness.trial.spec import Trial, TrialFailure, TrialResult

Outcome = TrialResult | TrialFailure
Outcomes = dict[TrialKey, Outcome]
Measure = Callable[[Sequence[Trial]], Iterable[Outcome]]
"""Runs a batch of trials, answering in order; `Executor.run`, or a simulation."""


class Compared(Protocol):
    """A result that has comparisons; what else it says does not matter here."""

    @property
    def comparisons(self) -> Sequence[Estimate]:
        """A ratio with its interval each."""
        ...


_ATTEMPTS = 3
"""Times a trial is tried that the machine, not the cell, has spoiled."""
_LOOK_EVERY = 3
"""Rounds from one look at the intervals to the next: a look takes about as long as a trial."""
_GIVE_UP_AFTER = 2
"""Failures of a cell after which its remaining trials, and its block's, are left out."""


@dataclass(slots=True)
class Rounds:
    """One experiment under way, ``batch`` trials prepared at a time, ``outcomes`` there already.

    ``on_trial(turn, outcome)`` is told of each new one. ``alone`` is entered while trials are
    timed.
    """

    plan: Plan
    store: RunStore
    measure: Measure
    on_trial: Callable[[Turn, Outcome], None]
    batch: int = 2
    alone: Callable[[], AbstractContextManager[None]] = nullcontext
    outcomes: Outcomes = field(default_factory=dict)
    repeated: int = 0
    _failures: Counter[Cell] = field(default_factory=Counter)

    def run(self, summarise: Callable[[Outcomes], Compared], precise: "Precision") -> None:
        """Run what is not stored yet. KeyboardInterrupt leaves all finished trials stored."""
        counting = [turn for turn in exact_turns(self.plan) if self._is_due(turn)]
        self._take(counting)
        if not precise.half_width and not self._is_any_due():
            return
        with self.alone():
            if not counting and not self._is_complete():
                # The first trial after idle is slow (45 % here), whichever cell it is: not kept.
                # Trials that count, where there are some, wake the machine as well.
                first = self._trial(next(timing_round(self.plan, 1)))
                list(self.measure([msgspec.structs.replace(first, rows_path="")]))
            self._time(summarise, precise)

    def _time(self, summarise: Callable[[Outcomes], Compared], precise: "Precision") -> None:
        number = 0
        while number < self.plan.rounds or precise.wants_more(lambda: summarise(self.outcomes)):
            number += 1
            if not self._take(timing_round(self.plan, number)) and number > self.plan.rounds:
                return

    def _is_any_due(self) -> bool:
        rounds = range(1, self.plan.rounds + 1)
        return any(self._is_due(turn) for each in rounds for turn in timing_round(self.plan, each))

    def _is_complete(self) -> bool:
        last = timing_round(self.plan, self.plan.rounds)
        return all(_key(turn) in self.outcomes for turn in last)

    def _is_due(self, turn: Turn) -> bool:
        return not isinstance(self.outcomes.get(_key(turn)), TrialResult)

    def _take(self, turns: Iterable[Turn]) -> bool:
        """Run the turns that have no result yet; whether any cell still gives results."""
        turns = list(turns)
        due = [turn for turn in turns if self._is_due(turn)]
        while due := [turn for turn in due if not self._has_given_up(turn)]:
            batch = self._next(due, turns)
            due = [turn for turn in due if turn not in batch]
            self._measure(batch)
        return any(isinstance(self.outcomes.get(_key(turn)), TrialResult) for turn in turns)

    def _next(self, due: Sequence[Turn], turns: Sequence[Turn]) -> list[Turn]:
        """A batch; those that take turns do so all again, whichever of them is due."""
        if self._takes_turns(due[0]):
            return [turn for turn in turns if turn.block == due[0].block]
        return self._of_as_many_interpreters(turn for turn in due if not self._takes_turns(turn))

    def _of_as_many_interpreters(self, due: Iterable[Turn]) -> list[Turn]:
        """The first turns, and of the others those that can have an engine together with them."""
        chosen: list[Turn] = []
        engines: list[Cell | None] = []
        for turn in due:
            shared = engine_shared(turn.cell, turn.mode)
            if shared is None or shared not in engines:
                if len(engines) == self.batch:
                    continue
                engines.append(shared)
            chosen.append(turn)
        return chosen

    def _takes_turns(self, turn: Turn) -> bool:
        return bool(self.plan.slice_steps) and len(self._block(turn)) > 1

    def _block(self, turn: Turn) -> list[Cell]:
        """The cells that it is measured beside, and its own."""
        return [turn.cell] if turn.block < 0 else self.plan.timed[turn.block]

    def _has_given_up(self, turn: Turn) -> bool:
        """Whether its cell, or one that it is only of use beside, gives no results."""
        return any(self._failures[each] >= _GIVE_UP_AFTER for each in self._block(turn))

    def _measure(self, batch: Sequence[Turn]) -> None:
        size = len(batch) if self._takes_turns(batch[0]) else 1
        outcomes = iter(self.measure([self._trial(turn) for turn in batch]))
        parts = [batch[n : n + size] for n in range(0, len(batch), size)]
        for turns, found in zip(parts, zip(*[outcomes] * size, strict=True), strict=True):
            for turn, outcome in zip(turns, self._retried(turns, found), strict=True):
                self._keep(turn, outcome)

    def _keep(self, turn: Turn, outcome: Outcome) -> None:
        if isinstance(outcome, TrialFailure):
            self._failures[turn.cell] += 1
        self.outcomes[_key(turn)] = outcome
        self.store.keep_rows(_key(turn))
        self.store.save_trial(_key(turn), outcome)
        self.on_trial(turn, outcome)

    def _retried(self, turns: Sequence[Turn], outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        for _ in range(_ATTEMPTS - 1):
            spoiled = [each for each in outcomes if isinstance(each, TrialResult) and each.invalid]
            if not spoiled or any(each.recurs for each in spoiled):
                break
            self.repeated += len(turns)
            outcomes = list(self.measure([self._trial(turn) for turn in turns]))
        return outcomes

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
            slice_steps=self.plan.slice_steps if self._takes_turns(turn) else 0,
            trace_every=self.plan.trace_every if turn.mode == "opcodes" else 0,
        )


@dataclass(slots=True)
class Precision:
    """Goes on past the planned rounds until every interval is narrow or the time is spent.

    ``half_width`` relative (0.01 is 1 %), 0 for never; ``budget_seconds`` from the start.
    """

    half_width: float
    budget_seconds: float
    _began: float = field(default_factory=time.monotonic)
    _rounds_since: int = -1

    def wants_more(self, summarise: Callable[[], Compared]) -> bool:
        """Whether another round is due."""
        if not self.half_width:
            return False
        if time.monotonic() >= self._began + self.budget_seconds:
            return False
        self._rounds_since = (self._rounds_since + 1) % _LOOK_EVERY
        if self._rounds_since:
            return True
        return not all(is_precise(each, self.half_width) for each in summarise().comparisons)


def _key(turn: Turn) -> TrialKey:
    return trial_key(turn.round, turn.place, turn.cell, turn.mode)
