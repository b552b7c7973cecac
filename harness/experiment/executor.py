"""Where trials run: what every executor can do, and how one machine takes a block of them."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple, Protocol

import msgspec

from harness.axes import Cell
from harness.experiment.plan import Turn, counting_shared
from harness.experiment.trial_key import TrialKey
from harness.trial.spec import Trial, TrialFailure, TrialResult

TrialOutcome = TrialResult | TrialFailure

_ATTEMPTS = 3
"""Times a trial is tried that the machine, not the cell, has spoiled."""

GIVE_UP_AFTER = 2
"""Failures of a cell after which its remaining trials are left out."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Trials of one group in one round, interleaved; one machine takes all of them.

    ``trials`` has what is asked at each of ``turns``. ``warm_up``: the machine has been idle, and
    the first trial after that is slow (45 % here), whichever cell it is, so it is not kept.
    """

    round: int
    group: int
    turns: list[Turn]
    trials: list[Trial]
    warm_up: bool = False

    def missing(self, outcomes: Mapping[TrialKey, TrialOutcome]) -> set[Turn]:
        """The turns of which there is no result."""
        return {turn for turn in self.turns if not isinstance(outcomes.get(turn.key), TrialResult)}

    def only(self, chosen: Collection[Turn]) -> "Block":
        """The same with these turns alone."""
        places = [n for n, turn in enumerate(self.turns) if turn in chosen]
        return msgspec.structs.replace(
            self, turns=[self.turns[n] for n in places], trials=[self.trials[n] for n in places]
        )


class Ended(NamedTuple):
    """The ``nth`` trial of a block, from 0 on. ``repeated``: trials that were run again for it."""

    block: Block
    nth: int
    outcome: TrialOutcome
    repeated: int = 0


class Executor(Protocol):
    """Where trials run.

    ``is_spread``: blocks run on several machines, so that one which was cut short is repeated as
    a whole: trials of two machines are no pair. ``notes``: what a result says of how they ran.
    """

    is_spread: ClassVar[bool] = False
    notes: Sequence[str] = ()

    @property
    def machines(self) -> int:
        """How many take blocks side by side."""
        return 1

    def run(self, trials: Sequence[Trial]) -> Iterable[TrialOutcome]:
        """Each trial's result or failure, in order; afterwards nothing of them is left."""
        ...

    def batch_size(self, cells: Iterable[Cell]) -> int:
        """How many trials of such cells are best handed over together."""
        ...

    def run_blocks(self, blocks: Iterable[Block]) -> Iterator[Ended]:
        """Each trial as it ends; a block is asked for only when a machine is free to take it."""
        for block in blocks:
            yield from run_block(block, self)


def run_block(block: Block, executor: Executor) -> Iterator[Ended]:
    """Run a block's trials in their order, as many together as is best."""
    if block.warm_up:
        list(executor.run([msgspec.structs.replace(block.trials[0], rows_path="")]))
    batch = executor.batch_size(turn.cell for turn in block.turns)
    failures: Counter[Cell] = Counter()
    due = list(range(len(block.turns)))
    while due := [n for n in due if failures[block.turns[n].cell] < GIVE_UP_AFTER]:
        chosen = _next(block, due, batch)
        due = [n for n in due if n not in chosen]
        for ended in _measured(block, chosen, executor):
            failures[ended.outcome.cell] += isinstance(ended.outcome, TrialFailure)
            yield ended


def _next(block: Block, due: Sequence[int], batch: int) -> list[int]:
    """The first that are due: a whole rotation, or as many interpreters as make a batch."""
    first = due[0]
    if block.trials[first].slice_steps:
        return [n for n in due if block.turns[n].rotation == block.turns[first].rotation]
    chosen: list[int] = []
    interpreters: list[Hashable] = []
    for n in (n for n in due if not block.trials[n].slice_steps):
        shared = counting_shared(block.trials[n])
        if shared is None or shared not in interpreters:
            if len(interpreters) == batch:
                continue
            interpreters.append(shared)
        chosen.append(n)
    return chosen


def _measured(block: Block, chosen: Sequence[int], executor: Executor) -> Iterator[Ended]:
    """What came of these trials; those that take turns are repeated together."""
    size = len(chosen) if block.trials[chosen[0]].slice_steps else 1
    outcomes = iter(executor.run([block.trials[n] for n in chosen]))
    parts = [chosen[n : n + size] for n in range(0, len(chosen), size)]
    for part, found in zip(parts, zip(*[outcomes] * size, strict=True), strict=True):
        kept, repeated = _retried([block.trials[n] for n in part], found, executor)
        for n, outcome in zip(part, kept, strict=True):
            yield Ended(block, n, outcome, repeated if n == part[0] else 0)


def _retried(
    trials: Sequence[Trial], outcomes: Sequence[TrialOutcome], executor: Executor
) -> tuple[Sequence[TrialOutcome], int]:
    repeated = 0
    for _ in range(_ATTEMPTS - 1):
        spoiled = [each for each in outcomes if isinstance(each, TrialResult) and each.invalid]
        if not spoiled or any(each.recurs for each in spoiled):
            break
        repeated += len(trials)
        outcomes = list(executor.run(trials))
    return outcomes, repeated
