"""Runs a plan: blocks of interleaved rounds, resumable, until rounds or precision are reached."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from harness.axes import Cell
from harness.experiment.executor import GIVE_UP_AFTER, Block, Executor, TrialOutcome
from harness.experiment.grid import group_key, traits
from harness.experiment.plan import EXACT_ROUND, Plan, Turn, exact_turns, timing_round
from harness.experiment.shard import Shard
from harness.experiment.store import RunStore, TrialKey
from harness.running.lease import Expects, nobody_hears
from harness.statistics.paired_ratio import Estimate, is_precise
from harness.trial.spec import Trial, TrialFailure, TrialResult

Outcomes = dict[TrialKey, TrialOutcome]


class HasComparisons(Protocol):
    """A result that has comparisons; what else it says does not matter here."""

    @property
    def comparisons(self) -> Sequence[Estimate]:
        """A ratio with its interval each."""
        ...


_LOOK_EVERY = 3
"""Rounds from one look at the intervals to the next: a look takes about as long as a trial."""


def _nobody_waits() -> AbstractContextManager[Expects]:
    return nullcontext(nobody_hears)


@dataclass(slots=True)
class Rounds:
    """One experiment under way, ``outcomes`` there already.

    ``on_trial(turn, outcome)`` is told of each new one. ``alone`` is entered while trials are
    timed. ``shard``: the part of the blocks that is run; None: all. ``is_awake``: trials have run
    on this machine a moment ago.
    """

    plan: Plan
    store: RunStore
    executor: Executor
    on_trial: Callable[[Turn, TrialOutcome], None]
    alone: Callable[[], AbstractContextManager[Expects]] = _nobody_waits
    shard: Shard | None = None
    outcomes: Outcomes = field(default_factory=dict)
    repeated: int = 0
    is_awake: bool = False
    _failures: Counter[Cell] = field(default_factory=Counter)

    def run(self, summarise: Callable[[Outcomes], HasComparisons], precise: "Precision") -> None:
        """Run what is not stored yet. KeyboardInterrupt leaves all finished trials stored."""
        counting = list(self._blocks(exact_turns(self.plan)))
        self._take(counting)
        if not precise.half_width and not self._is_any_due():
            return
        with self.alone() as expects:
            self._take(
                self._timed(summarise, precise, warm_up=not (counting or self.is_awake)), expects
            )

    def _timed(
        self, summarise: Callable[[Outcomes], HasComparisons], precise: "Precision", warm_up: bool
    ) -> Iterator[Block]:
        """Blocks that are timed, made as they are asked for.

        ``warm_up``: trials that count, where there are some, wake the machine as well.
        """
        number = 0
        while number < self.plan.rounds or precise.wants_more(lambda: summarise(self.outcomes)):
            number += 1
            for block in self._blocks(timing_round(self.plan, number), warm_up):
                yield block
                warm_up = False
            if number > self.plan.rounds and self._is_in_vain(number):
                return

    def _is_any_due(self) -> bool:
        rounds = range(1, self.plan.rounds + 1)
        return any(any(self._blocks(timing_round(self.plan, each))) for each in rounds)

    def _is_in_vain(self, number: int) -> bool:
        """Whether a round has ended without a result."""
        return all(
            isinstance(self.outcomes.get(turn.key), TrialFailure) or self._has_given_up(turn)
            for turn in timing_round(self.plan, number)
        )

    def _take(self, blocks: Iterable[Block], expects: Expects = nobody_hears) -> None:
        """Run these blocks and keep what comes of each trial.

        ``expects`` is told how many seconds the plan's rounds will take from then on.
        """
        began, stored = time.monotonic(), sum(key.round > EXACT_ROUND for key in self.outcomes)
        due = self.plan.rounds * sum(map(len, self.plan.timed)) - stored
        for done, ended in enumerate(self.executor.run_blocks(blocks), start=1):
            self.repeated += ended.repeated
            self._keep(ended.block.turns[ended.nth], ended.outcome)
            expects((time.monotonic() - began) / done * max(0, due - done))

    def _blocks(self, turns: Iterable[Turn], warm_up: bool = False) -> Iterator[Block]:
        """What is to be run of a round, group by group; only the first block is to warm up."""
        turns = list(turns)
        # What counts for a cell may do so on another device, in a group of its own.
        cells = [*self.plan.cells, *(turn.cell for turn in turns)]
        keys = dict.fromkeys(map(group_key, cells))
        number_of = {key: number for number, key in enumerate(keys)}
        by_group: dict[int, list[Turn]] = {}
        for turn in turns:
            by_group.setdefault(number_of[group_key(turn.cell)], []).append(turn)
        for group, members in by_group.items():
            planned = Block(
                round=members[0].round,
                group=group,
                turns=members,
                trials=[self._trial(turn) for turn in members],
                warm_up=warm_up,
            )
            block = self._due(planned)
            if block.turns and (self.shard is None or self.shard.takes(block)):
                yield block
                warm_up = False

    def _due(self, planned: Block) -> Block:
        """What of a block is to be run: see "Rounds" in docs/method.md."""
        block = planned.only([turn for turn in planned.turns if not self._has_given_up(turn)])
        missing = block.missing(self.outcomes)
        if self.executor.is_spread and block.round != EXACT_ROUND:
            found = (self.outcomes.get(turn.key) for turn in block.turns)
            runs = {each.block for each in found if isinstance(each, TrialResult)}
            return block if missing or len(runs) > 1 else block.only([])
        rotations = {turn.rotation for turn in missing if self._takes_turns(turn)}
        return block.only(
            [turn for turn in block.turns if turn in missing or turn.rotation in rotations]
        )

    def _takes_turns(self, turn: Turn) -> bool:
        return bool(self.plan.slice_steps) and len(self._rotation(turn)) > 1

    def _rotation(self, turn: Turn) -> list[Cell]:
        return [turn.cell] if turn.rotation < 0 else self.plan.timed[turn.rotation]

    def _has_given_up(self, turn: Turn) -> bool:
        """Whether its cell, or all that it is of use beside, gives no results.

        That is the baseline, which leads a rotation, and for a baseline any of the others.
        """
        baseline, *others = self._rotation(turn)
        is_alone = bool(others) and all(map(self._fails, others))
        return is_alone or self._fails(baseline) or self._fails(turn.cell)

    def _fails(self, cell: Cell) -> bool:
        return self._failures[cell] >= GIVE_UP_AFTER

    def _keep(self, turn: Turn, outcome: TrialOutcome) -> None:
        if isinstance(outcome, TrialFailure):
            self._failures[turn.cell] += 1
        else:
            if self.shard:
                outcome = msgspec.structs.replace(outcome, node=str(self.shard))
            if outcome.outputs:  # another machine has kept it elsewhere
                outputs = msgspec.structs.replace(outcome.outputs, path=self._rows_path(turn))
                outcome = msgspec.structs.replace(outcome, outputs=outputs)
        self.outcomes[turn.key] = outcome
        self.store.keep_rows(turn.key)
        self.store.save_trial(turn.key, outcome)
        self.on_trial(turn, outcome)

    def _rows_path(self, turn: Turn) -> str:
        """Where a trial leaves its rows, "" in a mode that has none."""
        where = {"timing": self.store.rows_path, "outputs": self.store.outputs_path}
        return str(where[turn.mode](turn.key)) if turn.mode in where else ""

    def _trial(self, turn: Turn) -> Trial:
        schedule = self.plan.schedules[turn.cell.workload]
        return Trial(
            cell=turn.cell,
            schedule_path=str(self.store.schedule_path(schedule)),
            schedule_sha256=schedule,
            mode=turn.mode,
            seed=turn.seed,
            gc_cycle=turn.gc_cycle,
            max_steps=turn.max_steps,
            rows_path=self._rows_path(turn),
            slice_steps=self.plan.slice_steps if self._takes_turns(turn) else 0,
            trace_every=self.plan.trace_every if turn.mode == "opcodes" else 0,
            lines_of=self.plan.lines_of if turn.mode == "outputs" else [],
            is_exact=traits(turn.cell).is_exact,
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

    def wants_more(self, summarise: Callable[[], HasComparisons]) -> bool:
        """Whether another round is due."""
        if not self.half_width:
            return False
        if time.monotonic() >= self._began + self.budget_seconds:
            return False
        self._rounds_since = (self._rounds_since + 1) % _LOOK_EVERY
        if self._rounds_since:
            return True
        return not all(is_precise(each, self.half_width) for each in summarise().comparisons)
