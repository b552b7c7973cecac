"""The modes of a trial: what is watched, on which clock, and under which collector."""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from engines.protocol import StepEngine, StepOutput
from gcbench.opcodes import OpcodeCounter, tracers

_COUNT_OFFSET = 100_000
_TRACED_STEPS = 8


class Watch(Protocol):
    """Takes an engine's steps for the client, looking on."""

    @property
    def step(self) -> Callable[[], StepOutput]:
        """Takes the engine's next step."""
        ...

    def results(self) -> dict[str, float | None]:
        """Metrics that only this watch can give, by name."""
        ...


class Unwatched:
    """The engine's own step: nothing between it and the client."""

    def __init__(self, engine: StepEngine, full_batch: int) -> None:
        self.step = engine.step

    def results(self) -> dict[str, float | None]:
        """None."""
        return {}


class TrackedObjects:
    """Lets the engine stamp the collector's young count instead of the time."""

    def __init__(self, engine: StepEngine, full_batch: int) -> None:
        self._engine = engine
        self._offset: list[list[None]] = []
        self._handoff_bytes: list[int] = []
        engine.clock = lambda: gc.get_count()[0]

    def step(self) -> StepOutput:
        """A step of the engine, and the size of what it handed over."""
        if not self._offset:
            # The count stops at zero when older objects die; from here on it never gets there.
            self._offset = [[] for _ in range(_COUNT_OFFSET)]
        output = self._engine.step()
        if len(output.request_index):
            size = self._engine.handoff_bytes(output.sampled)
            if size is not None:
                self._handoff_bytes.append(size)
        return output

    def results(self) -> dict[str, float | None]:
        """Mean size of a hand-off; the counts themselves are in the step's stamps."""
        sizes = self._handoff_bytes
        return {"handoff_bytes": sum(sizes) / len(sizes) if sizes else None}


class Opcodes:
    """Traces a few steps at full batch, once there is one.

    Raises ValueError where something else traces this process: counts would be wrong.
    """

    def __init__(self, engine: StepEngine, full_batch: int) -> None:
        if others := tracers():
            raise ValueError(
                f"{others[0]!r} traces the engine's process, so its bytecodes cannot be counted; "
                "run without it (coverage or a debugger?)."
            )
        self._engine = engine
        self._full_batch = full_batch
        self._counter = OpcodeCounter()
        self._is_full = False
        self._num_steps = 0
        self._num_rows = 0

    def step(self) -> StepOutput:
        """A step of the engine, traced if the one before it was full."""
        if not self._is_full or self._num_steps >= _TRACED_STEPS:
            output = self._engine.step()
            self._is_full = len(output.request_index) >= self._full_batch
            return output
        with self._counter:
            output = self._engine.step()
        self._num_steps += 1
        self._num_rows += len(output.request_index)
        return output

    def results(self) -> dict[str, float | None]:
        """Bytecodes and allocations of the traced steps; nothing where none was full."""
        if not self._num_rows:
            return {}
        return {
            "bytecodes_per_request_step": self._counter.num_opcodes / self._num_rows,
            "tracked_allocations_per_step": self._counter.num_allocations / self._num_steps,
        }


@dataclass(frozen=True, slots=True)
class Mode:
    """``policy`` overrides the cell's; "" leaves it. ``vary_phase``: of the counters, by seed.

    ``request_costs``: counted after the window.
    """

    watch: Callable[[StepEngine, int], Watch]
    probe: bool = False
    vary_phase: bool = False
    virtual_time: bool = True
    policy: str = ""
    request_costs: bool = False


MODES = {
    "timing": Mode(Unwatched, probe=True, vary_phase=True, virtual_time=False),
    "counts": Mode(Unwatched),
    "probed": Mode(Unwatched, probe=True),
    "tracked": Mode(TrackedObjects, policy="disabled"),
    "opcodes": Mode(Opcodes, policy="disabled", request_costs=True),
}
