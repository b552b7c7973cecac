"""The modes of a trial: what is watched, on which clock, and under which collector."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.protocol import Delivered, Int64Array, StepEngine, StepOutput
from gcbench.function_costs import counted_calls
from gcbench.opcodes import OpcodeCounter
from harness.trial.beside import num_begun, num_others
from harness.trial.client import Streams, take
from harness.trial.leaks import Leaks
from harness.trial.memory import Memory
from harness.trial.step_costs import StepCosts
from harness.trial.tracing import refuse_other_tracers
from harness.trial.tracked_objects import TrackedObjects
from harness.trial.watch import Extent, StepWatch, Watching

_TRACED_STEPS = 8
_PLACES = 4096
"""Random places of traced steps, before they come again."""


class Unwatched(Watching):
    """The engine's own step: nothing between it and the client."""

    def __init__(self, engine: StepEngine, extent: Extent) -> None:
        self.step = engine.step

    def results(self, num_rows: Int64Array) -> dict[str, float | None]:
        """None."""
        return {}


class Opcodes(Watching):
    """Traces a few steps at full batch, once there is one, or one step in so many of all; before
    each whether any request is left, and after it the streams that are read: a client asks both as
    often.

    Raises ValueError where something else traces this process: counts would be wrong.
    """

    def __init__(self, engine: StepEngine, extent: Extent) -> None:
        refuse_other_tracers()
        self._engine = engine
        self._every = extent.every
        self._full_batch = extent.full_batch
        self._counter = OpcodeCounter()
        self._instrumented = OpcodeCounter.instrumented()
        self._instrumented.__enter__()  # the steps of warm-up, too
        self._is_full = self._was_traced = False
        self._num_passed = self._num_steps = self._num_rows = self._num_opcodes = 0
        self._samples: list[tuple[int, int]] = []
        self._num_begun = num_begun()
        self._left_behind = extent.left_behind
        # When the results are asked for, the engine is gone, and its threads with it.
        self._num_others = num_others()
        # A random one of each so many: KV-cache blocks fill in a rhythm of their own.
        rng = np.random.default_rng(extent.seed)
        self._places: list[int] = rng.integers(max(1, self._every), size=_PLACES).tolist()

    def step(self) -> StepOutput:
        """A step of the engine, traced if it is one of those."""
        self._was_traced = self._is_next_traced()
        self._num_passed += 1
        if not self._was_traced:
            output = self._engine.step()
            self._is_full = output.num_rows >= self._full_batch
            return output
        with self._counter:
            output = self._engine.step()
        self._num_steps += 1
        self._num_rows += output.num_rows
        if self._every:
            self._samples.append((output.num_rows, 0))
            self._count_with_last()
        return output

    def take(self, delivered: Delivered, streams: Streams | None) -> Sequence[Any]:
        """A step's outputs, traced where the step was and they come by streams."""
        if streams is None or not self._was_traced:
            return take(delivered, streams)
        outputs = []
        with self._counter:
            for index in delivered.request_index.tolist():
                outputs.append(streams(index).get_nowait())
        if self._every:
            self._count_with_last()
        return outputs

    def _count_with_last(self) -> None:
        """What has been counted since belongs to the last of the traced steps."""
        counted = self._counter.num_opcodes
        rows, bytecodes = self._samples[-1]
        self._samples[-1] = rows, bytecodes + counted - self._num_opcodes
        self._num_opcodes = counted

    def has_unfinished_requests(self) -> bool:
        """The engine's answer, traced where the next step is."""
        if not self._is_next_traced():
            return self._engine.has_unfinished_requests()
        with self._counter:
            return self._engine.has_unfinished_requests()

    def _is_next_traced(self) -> bool:
        """After a full step, or at its place among so many."""
        if not self._every:
            return self._is_full and self._num_steps < _TRACED_STEPS
        turn, place = divmod(self._num_passed, self._every)
        return place == self._places[turn % _PLACES]

    def results(self, num_rows: Int64Array) -> dict[str, float | None]:
        """Bytecodes and allocations of the traced steps; nothing where none was full.

        From here on `costs` has them by function.
        """
        self._instrumented.__exit__(None, None, None)
        if not self._num_rows:
            return {}
        if self._every:  # that none was left is asked once more than there are steps
            self._count_with_last()
        # Another commit's engines may name no stages.
        counted = counted_calls(self._counter.tree, getattr(self._engine, "stages", {}))
        self.costs = StepCosts(
            num_steps=self._num_steps,
            num_rows=self._num_rows,
            functions=counted.functions,
            calls=counted.calls,
            every=self._every,
            samples=self._samples,
            beside=num_begun()
            - self._num_begun
            + self._left_behind
            + max(self._num_others, num_others()),
        )
        return {
            "bytecodes_per_request_step": self._counter.num_opcodes / self._num_rows,
            "tracked_allocations_per_step": self._counter.num_allocations / self._num_steps,
        }


def _sites(engine: StepEngine, extent: Extent) -> StepWatch:
    from harness.trial.sites import Sites  # no part of other trials' heap

    return Sites(engine, extent)


def _cadence(engine: StepEngine, extent: Extent) -> StepWatch:
    from harness.trial.cadence import CadenceWatch  # no part of other trials' heap

    return CadenceWatch(engine, extent)


def _long_run(engine: StepEngine, extent: Extent) -> StepWatch:
    from harness.trial.long_run_watch import LongRunWatch  # no part of other trials' heap

    return LongRunWatch(engine, extent)


def _message_watch(engine: StepEngine, extent: Extent) -> StepWatch:
    from harness.trial.message_watch import MessageWatch  # no part of other trials' heap

    return MessageWatch(engine)


def _outputs(engine: StepEngine, extent: Extent) -> StepWatch:
    from harness.trial.outputs import OutputWatch  # no part of other trials' heap

    return OutputWatch(engine, extent)


def _instructions(engine: StepEngine, extent: Extent) -> StepWatch:
    from harness.trial.instructions import InstructionWatch  # no part of other trials' heap

    return InstructionWatch(engine)


def _stage_times(engine: StepEngine, extent: Extent) -> StepWatch:
    from harness.trial.stage_meters import CpuTime  # no part of other trials' heap
    from harness.trial.stages import StageWatch

    return StageWatch(engine, "cpu_ns", CpuTime)


def _stage_bytecodes(engine: StepEngine, extent: Extent) -> StepWatch:
    from harness.trial.stage_meters import Bytecodes  # no part of other trials' heap
    from harness.trial.stages import StageWatch

    return StageWatch(engine, "bytecodes", Bytecodes)


@dataclass(frozen=True, slots=True)
class ModeSetup:
    """``policy`` overrides the cell's; "" leaves it. ``vary_phase``: of the counters, by seed.

    ``rehearse``: serve all requests once before the window opens. ``request_costs`` and
    ``leaked_bytes``: counted after it; ``cost_model``: by batch and context. ``fills_heap``: with
    the cell's heap objects, where the collector runs; without it they decide nothing, and take
    longer to make than the trial. ``times_passes``: they are like a server's, so that a pass over
    them takes as long. ``under``: the command that runs the interpreter, which runs by itself where
    there is none.
    """

    watch: Callable[[StepEngine, Extent], StepWatch]
    probe: bool = False
    vary_phase: bool = False
    virtual_time: bool = True
    policy: str = ""
    request_costs: bool = False
    cost_model: bool = False
    leaked_bytes: bool = False
    rehearse: bool = False
    fills_heap: bool = False
    times_passes: bool = False
    under: Sequence[str] = ()


_CALLGRIND = (
    "valgrind",
    "-q",
    "--tool=callgrind",
    "--callgrind-out-file=%q{TMPDIR}/callgrind.%p",
    "--compress-strings=no",
    "--compress-pos=no",
    "--instr-atstart=no",  # what is not counted is executed several times as fast
)

MODES = {
    "timing": ModeSetup(
        Unwatched,
        probe=True,
        vary_phase=True,
        virtual_time=False,
        fills_heap=True,
        times_passes=True,
    ),
    "counts": ModeSetup(Unwatched, fills_heap=True),
    "long_run": ModeSetup(_long_run, fills_heap=True),
    "probed": ModeSetup(Unwatched, probe=True, fills_heap=True, times_passes=True),
    "tracked": ModeSetup(TrackedObjects, policy="disabled+freeze"),
    "memory": ModeSetup(Memory, policy="disabled+freeze"),
    "leaks": ModeSetup(Leaks, policy="disabled", rehearse=True, leaked_bytes=True),
    "opcodes": ModeSetup(Opcodes, policy="disabled", request_costs=True),
    "grid": ModeSetup(Unwatched, policy="disabled", cost_model=True),
    "instructions": ModeSetup(_instructions, policy="disabled", under=_CALLGRIND),
    "outputs": ModeSetup(_outputs, policy="disabled"),
    "sites": ModeSetup(_sites, fills_heap=True),
    "cadence": ModeSetup(_cadence, policy="disabled"),
    "wire": ModeSetup(_message_watch, policy="disabled"),
    "stages": ModeSetup(_stage_times, fills_heap=True, times_passes=True),
    "stage_bytecodes": ModeSetup(_stage_bytecodes, policy="disabled"),
}
