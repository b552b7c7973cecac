"""Runs blocks on the nodes of a Ray cluster: each block one task, on one node that it has alone."""

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any, ClassVar

import msgspec

from harness.axes import Cell
from harness.experiment.executor import Block, Ended, Executor, TrialOutcome
from harness.experiment.grid import traits
from harness.experiment.plan import Turn
from harness.experiment.ray.cluster import Cluster
from harness.experiment.ray.error import ClusterError, cluster_reason
from harness.experiment.ray.on_node import BEGUN, AskedBlock, Heard, outcome_of
from harness.experiment.ray.tasks import Node, on_node, run_there
from harness.trial.spec import Trial, TrialFailure, TrialResult

_LOOK_SECONDS = 1.0
"""How often nodes are looked at: for new ones, and for some that say nothing."""
_ADMIT_SECONDS = 5.0
_LAST_WORDS_SECONDS = 5.0
"""For what a node has said to arrive, once Ray counts it as dead. A task that was on its way to one
that hangs Ray would let wait for ever.
"""
_PATIENCE_SECONDS = 60.0
"""For a node to come back where none is left."""
_MOST_LOSSES = 3
"""Of a block, before its trials count as failed: it may be what kills its nodes."""
_STRIKES = 2
"""Blocks that a living node may lose before it is left out."""


@dataclass(slots=True)
class _Running:
    """A block on its node. ``deadline``: by when the next trial must have ended."""

    node: Node
    block: Block
    name: str
    heard: set[int] = field(default_factory=set)
    deadline: float = math.inf


@dataclass(slots=True)
class RayExecutor(Executor):
    """The nodes of a cluster; seconds as `LocalExecutor` and `Lease` have them.

    A block has all CPUs that its node offers to Ray, and its GPUs where a cell wants one, so that
    no other task of Ray's runs beside it. A block that is lost with its node, or whose node says
    nothing any more, is a new block on whichever node is free; one that is slow is waited for.
    """

    is_spread: ClassVar[bool] = True
    cluster: Cluster
    timeout_seconds: float
    anyway: bool = False
    lease_seconds: float = 0.0
    program: Callable[[], Callable[..., Iterator[Any]]] = run_there
    """Makes what a node runs, as `run_there` does."""
    notes: list[str] = field(default_factory=list)
    _warm: set[str] = field(default_factory=set)
    _strikes: Counter[str] = field(default_factory=Counter)
    _files: dict[str, Any] = field(default_factory=dict)
    _admitted: float = 0.0
    _unmeasured: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._tell()

    @property
    def machines(self) -> int:
        """Nodes that measure."""
        return len(self.cluster.nodes)

    def batch_size(self, cells: Iterable[Cell]) -> int:
        """All of them: a node prepares as many together as it can."""
        return len(list(cells))

    def run(self, trials: Sequence[Trial]) -> Iterator[TrialOutcome]:
        """Each trial's result or failure, in order, all on one node."""
        turns = [Turn(0, n, each.cell, each.mode, each.seed) for n, each in enumerate(trials)]
        block = Block(round=0, group=0, turns=turns, trials=list(trials))
        outcomes = {ended.nth: ended.outcome for ended in self.run_blocks([block])}
        yield from (outcomes[n] for n in sorted(outcomes))

    def run_blocks(self, blocks: Iterable[Block]) -> Iterator[Ended]:
        """Each trial as it ends, with its node and block; Ctrl-C ends them all and goes on up.

        Raises ClusterError where no node is left, or none has what a block needs.
        """
        import ray

        source, pending, losses = iter(blocks), deque[Block](), Counter[tuple[int, int]]()
        running: dict[Any, _Running] = {}
        try:
            while True:
                self._begin(source, pending, running)
                if not running:
                    if not pending:
                        return
                    self._await_nodes()
                    continue
                ready, _ = ray.wait(list(running), num_returns=1, timeout=_LOOK_SECONDS)
                for task in ready:
                    try:
                        yield from self._heard(task, running)
                    except ray.exceptions.RayError as error:
                        yield from self._lost(running.pop(task), error, pending, losses)
                for task in [
                    each for each, on in running.items() if time.monotonic() > on.deadline
                ]:
                    ray.cancel(task, force=True)
                    silent = TimeoutError("it has said nothing for too long")
                    on = running.pop(task)
                    self.cluster.drop(on.node, str(silent))  # what hangs there may have its CPUs
                    yield from self._lost(on, silent, pending, losses)
        finally:
            for task in running:
                ray.cancel(task, force=True)

    def _begin(
        self, source: Iterator[Block], pending: deque[Block], running: dict[Any, _Running]
    ) -> None:
        """Give every free node a block, as long as there are any; one is pending where none can."""
        if time.monotonic() > self._admitted + _ADMIT_SECONDS:
            self._admit()
            for on in running.values():
                if on.node.id not in self.cluster.nodes:
                    on.deadline = min(on.deadline, time.monotonic() + _LAST_WORDS_SECONDS)
        busy = {each.node.id for each in running.values()}
        free = deque(each for id, each in self.cluster.nodes.items() if id not in busy)
        while free or not running:
            if not pending and (block := next(source, None)) is not None:
                pending.append(block)
            # Without its control store Ray would hold this process up at the next task.
            if not pending or not free or not self.cluster.answers():
                return
            node, block = free.popleft(), pending.popleft()
            running[self._task(node, block)] = _Running(node, block, f"{node.name}-{token_hex(4)}")

    def _admit(self) -> None:
        self.cluster.admit()
        self._admitted = time.monotonic()
        self._tell()

    def _tell(self) -> None:
        """Note once of each node that it is left out, has our code, or may be noisy."""
        left_out, nodes = self.cluster.left_out, self.cluster.nodes.values()
        said = [f"Node {name} is left out: {left_out[name]}." for name in sorted(left_out)]
        said += [
            f"Node {node.name} had another gcbench, or none, and was sent this one."
            for node in nodes
            if node.path
        ]
        if unmeasured := sorted(set(self.cluster.unmeasured) - self._unmeasured):
            self._unmeasured |= set(unmeasured)
            said.append(
                f"How noisy {', '.join(unmeasured)} may be is not known for this code: `gcbench "
                f"doctor --noise --cluster {self.cluster.address}` measures it, and too noisy "
                "nodes are then left out."
            )
        self.notes += [each for each in said if each not in self.notes]

    def _task(self, node: Node, block: Block) -> Any:
        is_timed = any(trial.mode == "timing" for trial in block.trials)
        block = msgspec.structs.replace(block, warm_up=is_timed and node.id not in self._warm)
        self._warm.add(node.id)
        asked = AskedBlock(
            block=block,
            timeout_seconds=self.timeout_seconds,
            anyway=self.anyway,
            lease_seconds=self.lease_seconds,
        )
        wants_gpu = any(traits(turn.cell).takes_gpu for turn in block.turns)
        if wants_gpu and not node.gpus:
            raise ClusterError(
                f"--cluster {self.cluster.address}: node {node.name} has no GPU for Ray, which "
                f"{block.turns[0].cell.device} needs; start it with --num-gpus, or leave it out "
                "with --leave-out"
            )
        paths = {trial.schedule_sha256: trial.schedule_path for trial in block.trials}
        files = [self._file(name, Path(path)) for name, path in paths.items()]
        options = {"num_cpus": node.cpus, "num_gpus": node.gpus if wants_gpu else 0}
        task = on_node(self.program, node, num_returns="streaming", **options)
        return task.remote(msgspec.json.encode(asked), list(paths), *files)

    def _file(self, name: str, path: Path) -> Any:
        """A schedule's file in Ray's store, put there once."""
        import ray

        if name not in self._files:
            self._files[name] = ray.put(path.read_bytes())
        return self._files[name]

    def _heard(self, task: Any, running: dict[Any, _Running]) -> Iterator[Ended]:
        """What a task says next, once it has said it. Raises RayError where it is lost."""
        import ray

        on = running[task]
        try:
            ref = next(task)
        except StopIteration:
            del running[task]
            return
        heard = Heard(*ray.get(ref))
        # A rotation says nothing until all of it has been prepared and measured.
        on.deadline = time.monotonic() + self.timeout_seconds * (2 + len(on.block.trials))
        if heard.nth == BEGUN:
            self.notes += msgspec.json.decode(heard.outcome, type=list[str])
            return
        on.heard.add(heard.nth)
        if heard.rows:
            Path(on.block.trials[heard.nth].rows_path).write_bytes(heard.rows)
        outcome = outcome_of(heard)
        if isinstance(outcome, TrialResult):
            outcome = msgspec.structs.replace(outcome, node=on.node.name, block=on.name)
        yield Ended(on.block, heard.nth, outcome, heard.repeated)

    def _lost(
        self,
        on: _Running,
        error: Exception,
        pending: deque[Block],
        losses: Counter[tuple[int, int]],
    ) -> Iterator[Ended]:
        """Repeat the block elsewhere; failures of its trials where that has not helped."""
        why = cluster_reason(error)
        self._admit()  # a node that is dead is one no more
        self._strikes[on.node.id] += 1
        if on.node.id in self.cluster.nodes and self._strikes[on.node.id] >= _STRIKES:
            self.cluster.drop(on.node, f"it has lost {_STRIKES} blocks, the last one because {why}")
            self._tell()
        of = on.block.round, on.block.group
        losses[of] += 1
        self.notes.append(f"A block of round {on.block.round} was lost on {on.node.name}: {why}.")
        if losses[of] < _MOST_LOSSES:
            pending.append(on.block)
            return
        words = f"its block was lost {_MOST_LOSSES} times, the last time on {on.node.name}: {why}"
        for nth, turn in enumerate(on.block.turns):
            if nth not in on.heard:
                failure = TrialFailure(
                    cell=turn.cell, mode=turn.mode, seed=turn.seed, kind="killed", reason=words
                )
                yield Ended(on.block, nth, failure)

    def _await_nodes(self) -> None:
        """Until there is one that measures."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            time.sleep(_LOOK_SECONDS)
            self._admit()
            if self.cluster.nodes:
                return
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"--cluster {self.cluster.address}: no node has been left for "
                    f"{_PATIENCE_SECONDS:g} s; what is finished is kept, and --resume goes on"
                )
