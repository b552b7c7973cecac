"""Mode ``tracked``: how many objects the collector tracks, in a step and from step to step."""

import gc

from engines.protocol import Int64Array, StepEngine, StepOutput
from harness.trial.watch import Extent, StepLog, Watching

_COUNT_ALL_EVERY = 4
"""Steps from one count of all objects to the next: it walks over the whole heap."""


class TrackedObjects(Watching):
    """Lets the engine stamp the number of a step's own tracked objects instead of the time.

    With all that was there frozen, `gc.get_objects` lists what the step has made, whatever it was
    made of: an object from one of CPython's free lists does not move `gc.get_count`, but it is in
    the list. What takes the place of an older object is, too.
    """

    def __init__(self, engine: StepEngine, extent: Extent) -> None:
        self._engine = engine
        self._tracked = StepLog()
        self._num_steps = 0
        self._num_handoffs = 0
        self._handoff_bytes = 0

    def window_opens(self) -> None:
        """From here on the stamps are counts."""
        self._engine.clock = _new_objects

    def step(self) -> StepOutput:
        """A step of the engine, and the size of what it handed over."""
        gc.freeze()
        if self._num_steps % _COUNT_ALL_EVERY == 0:
            self._tracked.write(self._num_steps, gc.get_freeze_count())
        self._num_steps += 1
        output = self._engine.step()
        if output.num_rows:
            size = self._engine.handoff_bytes(output.sampled)
            if size is not None:
                self._num_handoffs += 1
                self._handoff_bytes += size
        return output

    def results(self, num_rows: Int64Array) -> dict[str, float | None]:
        """What a step leaves, and the mean size of a hand-off; the peak is in the stamps."""
        mean_size = self._handoff_bytes / self._num_handoffs if self._num_handoffs else None
        return {
            "tracked_survivors_per_step": self._tracked.mean_rise(num_rows, _COUNT_ALL_EVERY),
            "handoff_bytes": mean_size,
        }


def _new_objects() -> int:
    """Tracked objects that are not frozen, those of all generations."""
    return len(gc.get_objects())
