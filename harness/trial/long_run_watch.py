"""Mode ``long_run``: a schedule served again and again, to see how often full passes come."""

import gc

from engines.protocol import Int64Array, StepEngine, StepOutput
from harness.trial.long_run import LongRun
from harness.trial.watch import Extent, Watching

LEAST_STEPS, MOST_STEPS = 1_000, 4_000
"""The schedule is served again and again until there were so many steps and `ENOUGH_PASSES`, or so
many steps at most."""

ENOUGH_PASSES = 4


class LongRunWatch(Watching):
    """Counts steps, and looks at the collector of this process as it begins a full pass."""

    def __init__(self, engine: StepEngine, extent: Extent) -> None:
        self._engine = engine
        self._steps = self._steps_each = 0
        self._passes: list[int] = []
        self._collections = 0

    def step(self) -> StepOutput:
        """The engine's next step."""
        output = self._engine.step()
        self._steps += 1
        return output

    def window_opens(self) -> None:
        """From here on full passes are seen."""
        gc.callbacks.append(self._look)

    def wants_more(self) -> bool:
        """Whether the schedule is to be served once more."""
        self._steps_each = self._steps_each or self._steps
        is_settled = self._steps >= LEAST_STEPS and len(self._passes) >= ENOUGH_PASSES
        return not is_settled and self._steps + self._steps_each <= MOST_STEPS

    def steps_end(self) -> None:
        """No more are seen."""
        gc.callbacks.remove(self._look)
        _, of_young, of_old = gc.get_threshold()
        self.long_run = LongRun(
            steps_each=self._steps_each,
            steps=self._steps,
            full_passes=list(self._passes),
            due=self._collections / ((of_young + 1) * (of_old + 1)),
        )

    def results(self, num_rows: Int64Array) -> dict[str, float | None]:
        """The long-run rate."""
        if self.long_run is None:
            return {}
        per_serving = self.long_run.passes_per_serving
        return {"full_passes_per_1000_steps": 1000 * per_serving / self._steps_each}

    def _look(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collections += 1
            if info["generation"] == 2:
                self._passes.append(self._steps)
