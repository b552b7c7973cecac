"""Mode ``memory``: the bytes and blocks that a step takes and keeps, tracked or not."""

import gc
import tracemalloc

import numpy as np

from engines.protocol import Int64Array, StepEngine, StepOutput
from harness.trial.allocated_blocks import allocated_blocks
from harness.trial.tracing import start_tracing
from harness.trial.watch import Extent, StepLog, Watching


class Memory(Watching):
    """Traces every allocation of Python and NumPy from the warm-up on.

    A full collection in front of each step empties CPython's free lists: what a step takes from
    the allocator is then what it needs. Raises ValueError where `tracemalloc` runs already.
    """

    def __init__(self, engine: StepEngine, extent: Extent) -> None:
        # Before the warm-up: the death of an object that was not traced would not be seen.
        start_tracing()
        self._engine = engine
        self._blocks, self._bytes, self._peaks = StepLog(), StepLog(), StepLog()
        self._num_steps = self._lowest = self._rise = 0

    def window_opens(self) -> None:
        """From here on each phase's end is a look at the memory."""
        self._engine.clock = self._look

    def step(self) -> StepOutput:
        """A step of the engine, looked at between its phases."""
        gc.collect()
        step = self._num_steps
        self._num_steps += 1
        self._blocks.write(step, allocated_blocks())
        self._lowest, _ = tracemalloc.get_traced_memory()
        self._bytes.write(step, self._lowest)
        self._rise = 0
        tracemalloc.reset_peak()
        output = self._engine.step()
        self._look()
        self._peaks.write(step, self._rise)
        return output

    def _look(self) -> int:
        """What a step first lets go of does not make room for what it then takes."""
        now, peak = tracemalloc.get_traced_memory()
        self._rise = max(self._rise, peak - self._lowest)
        self._lowest = min(self._lowest, now)
        tracemalloc.reset_peak()
        return now

    def results(self, num_rows: Int64Array) -> dict[str, float | None]:
        """Bytes at a step's peak, bytes and blocks that it keeps; tracing ends."""
        tracemalloc.stop()
        peaks = self._peaks.of_full_steps(num_rows)
        return {
            "memory_peak_per_step": float(np.median(peaks)) if len(peaks) else None,
            "memory_kept_per_step": self._bytes.mean_rise(num_rows),
            "allocated_blocks_kept_per_step": self._blocks.mean_rise(num_rows),
        }
