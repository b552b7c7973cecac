"""How good are verdicts from many nodes, and how soon are they there? Real blocks, drawn again.

`PYTHONPATH=.:tests/harness python tests/harness/block_model.py [NODES...]` prints the table of
docs/cluster.md (minutes).

The noise is that of stored runs: a block's trials are drawn as they stood together in one round of
the main job, each relative to its cell. Nodes differ by planted factors. Rounds, dealing, pairing
and verdicts are the real ones; only the clock is simulated.
"""

import heapq
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from small import CELL, MemoryStore, answer, plan, summary

from harness.axes import Cell
from harness.experiment.executor import Block, Ended, Executor, TrialOutcome
from harness.experiment.result import Comparison
from harness.experiment.rounds import Outcomes, Precision, Rounds
from harness.statistics.paired_ratio import paired_ratio
from harness.statistics.verdict import Verdict, decide
from harness.trial.spec import Trial

_STORED = msgspec.json.decode((Path(__file__).parent / "stored_blocks.json").read_bytes())
"""Relative times ``[rounds, cells]`` of runs of the main job: what a trial took over its cell's
median, times √(7/6), since seven rounds fit their median closely. ``quiet``: two trials of a block
differ by 1.1 % (from the median deviation); ``noisy``, of a busier machine: by 2.2 %.
``trial_seconds``: from an interpreter's start to its end, on average.
"""
QUIET, NOISY = "quiet", "noisy"
SPEEDS = (1.0, 1.3, 0.8)
PAIR = [msgspec.structs.replace(CELL, copy=copy) for copy in (0, 1)]


@cache
def real_blocks(runs: str = QUIET) -> list[NDArray[np.float64]]:
    """Relative times ``[cells]`` of each stored round."""
    return [np.array(block) for block in _STORED[runs]]


def trial_seconds() -> float:
    """What a trial of the main job takes, on average."""
    return float(_STORED["trial_seconds"])


@dataclass
class Nodes(Executor):
    """Nodes on a simulated clock: ``factors`` by node, and of each cell ``effects`` by node.

    A node is given a block when it is free, as `RayExecutor` does; a trial takes ``seconds`` and
    a node ``start_seconds`` before its first.
    """

    is_spread = True
    factors: Sequence[float]
    effects: Sequence[float]
    rng: np.random.Generator
    seconds: float = 1.0
    start_seconds: float = 0.0
    runs: str = QUIET
    wall_seconds: float = 0.0
    drawn: dict[tuple[int, int], NDArray[np.float64]] = field(default_factory=dict)

    def batch_size(self, cells: Iterable[Cell]) -> int:
        return 2

    def run(self, trials: Sequence[Trial]) -> Iterator[TrialOutcome]:
        raise NotImplementedError("blocks only")

    def run_blocks(self, blocks: Iterable[Block]) -> Iterator[Ended]:
        free = [(self.start_seconds, node) for node in range(len(self.factors))]
        for number, block in enumerate(blocks):
            begin, node = heapq.heappop(free)
            noise = self.rng.permutation(self._noise(block))
            end = begin
            for nth, trial in enumerate(block.trials):
                effect = self.effects[node] if trial.cell.copy else 0.0
                relative = self.factors[node] * noise[nth] * (1 + effect)
                end += relative * self.seconds
                found = answer(trial, {"host_time_per_step": float(relative) / 1000})
                found = msgspec.structs.replace(found, node=f"node-{node}", block=str(number))
                yield Ended(block, nth, found)
            heapq.heappush(free, (end, node))
            self.wall_seconds = max(self.wall_seconds, end)

    def _noise(self, block: Block) -> NDArray[np.float64]:
        of = block.round, block.group
        if of not in self.drawn:
            stored = real_blocks(self.runs)
            self.drawn[of] = stored[self.rng.integers(len(stored))]
        return self.drawn[of]


def experiment(executor: Executor, rounds: int, seed: int) -> tuple[Comparison, Outcomes]:
    """Two cells of which the second is the candidate, and what their trials gave."""
    of = plan(PAIR, rounds=rounds, seed=seed)
    under_way = Rounds(of, MemoryStore(), executor, lambda turn, outcome: None)
    under_way.run(lambda outcomes: summary(of, outcomes), Precision(0, 0))
    (comparison,) = summary(of, under_way.outcomes).comparisons
    return comparison, under_way.outcomes


def simulated(
    seed: int, rounds: int, factors: Sequence[float], effects: Sequence[float] = ()
) -> Nodes:
    """Nodes with the noise of a seed."""
    rng = np.random.default_rng([seed, rounds])
    return Nodes(factors, effects or [0.0] * len(factors), rng)


def a_cell_to_a_node(outcomes: Outcomes) -> Verdict:
    """What the same trials say where nobody pairs inside blocks: the baseline's of one node are
    held against the candidate's of another, as where a scheduler sends each cell somewhere.
    """
    by_node: dict[str, tuple[list[float], list[float]]] = {}
    for _, outcome in sorted(outcomes.items()):
        sides = by_node.setdefault(outcome.node, ([], []))  # type: ignore[union-attr]
        sides[outcome.cell.copy].append(outcome.metrics["host_time_per_step"])  # type: ignore[union-attr]
    nodes = sorted(by_node)
    before, after = by_node[nodes[0]][0], by_node[nodes[1]][1]
    # As many as there are pairs of them, again and again: the error is not one of too few trials.
    wanted = max(7, min(len(before), len(after)))
    ratio = paired_ratio(np.resize(before, wanted), np.resize(after, wanted))
    return decide([ratio], "lower")[0]


def paired_with_another_block(outcomes: Outcomes, rng: np.random.Generator) -> Verdict:
    """What the same trials say where each candidate's is held against any block's baseline."""
    sides: tuple[list[float], list[float]] = ([], [])
    for _, outcome in sorted(outcomes.items()):
        sides[outcome.cell.copy].append(outcome.metrics["host_time_per_step"])  # type: ignore[union-attr]
    ratio = paired_ratio(rng.permutation(sides[0]), sides[1])
    return decide([ratio], "lower")[0]


def share(found: Iterable[bool]) -> float:
    """Of True."""
    return float(np.mean(list(found)))


REPETITIONS = 200
CELLS = 1000


def main(wanted: Sequence[int]) -> None:
    """Print the rows of so many nodes: spread and rounds against verdicts and time."""
    print("nodes | spread | rounds | wrong, A/A | 3 % found | unpaired 3 % | hours for 1,000 cells")
    for nodes in wanted:
        for spread in (0.0, 0.3) if nodes > 1 else (0.0,):
            for rounds in (7, 14):
                wrong, found, apart = [], [], []
                for seed in range(REPETITIONS):
                    rng = np.random.default_rng([seed, nodes])
                    factors = np.exp(spread * rng.uniform(-1, 1, nodes)).tolist()
                    equal, _ = experiment(simulated(seed, rounds, factors), rounds, seed)
                    slower, outcomes = experiment(
                        simulated(seed, rounds, factors, [0.03] * nodes), rounds, seed
                    )
                    wrong.append(equal.verdict in ("better", "worse"))
                    found.append(slower.verdict == "worse")
                    apart.append(paired_with_another_block(outcomes, rng) == "worse")
                cells = (share(wrong), share(found), share(apart))
                hours = wall_hours(nodes, spread, rounds)
                print(
                    nodes,
                    spread,
                    rounds,
                    *(f"{each:.1%}" for each in cells),
                    f"{hours:.2f}",
                    sep=" | ",
                    flush=True,
                )


def wall_hours(nodes: int, spread: float, rounds: int, groups: int = 30) -> float:
    """How long a thousand cells take in blocks of ``groups`` groups, on the simulated clock."""
    rng = np.random.default_rng([nodes, rounds])
    factors = np.exp(spread * rng.uniform(-1, 1, nodes))
    free = [(0.0, node) for node in range(nodes)]
    stored = real_blocks()
    wall = 0.0
    for _ in range(groups * rounds):
        begin, node = heapq.heappop(free)
        noise = rng.choice(stored[rng.integers(len(stored))], CELLS // groups)
        end = begin + float(factors[node] * noise.sum() * trial_seconds())
        heapq.heappush(free, (end, node))
        wall = max(wall, end)
    return wall / 3600


if __name__ == "__main__":
    main([int(nodes) for nodes in sys.argv[1:]] or [1, 2, 8, 64])
