"""Mode ``cadence``: how the count of young objects moves, bytecode by bytecode."""

from array import array

import numpy as np

from engines.protocol import Int64Array, StepEngine
from gcbench.opcodes import OpcodeCounter
from harness.collector.young_counts import packed
from harness.trial.tracing import refuse_other_tracers
from harness.trial.watch import Extent, Watching

_HELD = 1 << 17
"""CPython stops counting down at 0: so many are there to be counted down from."""


class CadenceWatch(Watching):
    """Traces all that runs in the window, the client between steps too.

    Raises ValueError where something else traces this process.
    """

    def __init__(self, engine: StepEngine, extent: Extent) -> None:
        refuse_other_tracers()
        self.step = engine.step
        self._changes = array("i")
        self._counter = OpcodeCounter(self._changes)
        self._instrumented = OpcodeCounter.instrumented()
        self._instrumented.__enter__()  # the steps of warm-up, too
        self._held: list[dict[str, object]] = []

    def window_opens(self) -> None:
        """From here on the count is followed."""
        self._held = [{} for _ in range(_HELD)]  # counted as allocated
        self._counter.__enter__()

    def steps_end(self) -> None:
        """The changes are all there."""
        self._counter.__exit__()
        self._instrumented.__exit__(None, None, None)
        self.young = packed(self._changes)

    def results(self, num_rows: Int64Array) -> dict[str, float | None]:
        """None. Raises ValueError where the count may have reached 0."""
        if -np.cumsum(self._changes, dtype=np.int64).min(initial=0) >= _HELD:
            raise ValueError(
                "the collector's count of young objects came to 0, so it cannot be followed: "
                "something calls the collector by hand (gcbench run --mode leaks names the line), "
                f"or {_HELD:,} more objects were freed than made."
            )
        return {}
