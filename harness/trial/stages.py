"""Modes ``stages`` and ``stage_bytecodes``: what each stage of a step takes in each process."""

from typing import TYPE_CHECKING

from engines.protocol import Int64Array, StepEngine
from harness.trial.step_costs import StageCosts, StageRow
from harness.trial.watch import Watching

if TYPE_CHECKING:
    from engines.protocol import StageCost


class StageWatch(Watching):
    """Has the engine's processes count while the window is open.

    Raises ValueError for an engine that knows no stages.
    """

    def __init__(self, engine: StepEngine, counted: str, meter: type) -> None:
        from engines.protocol import HasStages  # another commit's engines may not have it

        if not isinstance(engine, HasStages):
            raise ValueError("this engine does not tell the stages of its steps apart")
        self.step = engine.step
        self.stages: StageCosts | None = None
        self._engine = engine
        self._counted = counted
        self._meter = meter
        self._costs: list[StageCost] = []

    def window_opens(self) -> None:
        """Count from here on."""
        self._engine.begin_stages(self._meter)

    def steps_end(self) -> None:
        """Count no more."""
        self._costs = self._engine.end_stages()

    def results(self, num_rows: Int64Array) -> dict[str, float | None]:
        """No metric: from here on `stages` has all."""
        self.stages = StageCosts(
            counted=self._counted,
            num_rows=int(num_rows.sum()),
            costs=[StageRow(*each) for each in self._costs],
        )
        return {}
