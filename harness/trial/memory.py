"""Mode ``memory``: the bytes and blocks that a step takes and keeps, tracked or not."""

import gc
import tracemalloc

import numpy as np

from engines.protocol import Int64Array, StepEngine, StepOutput
from harness.trial.allocated_blocks import allocated_blocks
from harness.trial.watch import StepLog, Watching


class Memory(Watching):
    """Traces every allocation of Python and NumPy from the warm-up on.

    A full collection in front of each step empties CPython's free lists: what a step takes from
    the allocator is then what it needs. Raises ValueError where `tracemalloc` runs already.
    """

    def __init__(self, engine: StepEngine, full_batch: int) -> None:
        if tracemalloc.is_tracing():
            raise ValueError(
                "tracemalloc traces the engine's process already, so its memory cannot be "
                "counted; run without PYTHONTRACEMALLOC and without -X tracemalloc."
            )
        self._engine = engine
        self._blocks, self._bytes, self._peaks = StepLog(), StepLog(), StepLog()
        self._num_steps = 0
        # Before the warm-up: the death of an object that was not traced would not be seen.
        tracemalloc.start()

    def step(self) -> StepOutput:
        """A step of the engine, between two looks at the memory."""
        gc.collect()
        step = self._num_steps
        self._num_steps += 1
        self._blocks.write(step, allocated_blocks())
        before, _ = tracemalloc.get_traced_memory()
        self._bytes.write(step, before)
        tracemalloc.reset_peak()
        output = self._engine.step()
        _, peak = tracemalloc.get_traced_memory()
        self._peaks.write(step, peak - before)
        return output

    def results(self, num_rows: Int64Array) -> dict[str, float | None]:
        """Bytes at a step's peak, bytes and blocks that it keeps; tracing ends."""
        tracemalloc.stop()
        peaks = self._peaks.of_full_steps(num_rows)
        return {
            "memory_peak_per_step": float(np.median(peaks)) if len(peaks) else None,
            "memory_kept_per_step": self._bytes.mean_rise(num_rows),
            "allocated_blocks_kept_per_step": self._blocks.mean_rise(num_rows),
        }
