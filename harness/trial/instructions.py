"""Counts machine instructions from a window's begin to the end of its last step."""

from engines.protocol import Int64Array, StepEngine
from harness.trial.callgrind import Callgrind, read_dump
from harness.trial.step_costs import CFunctionCost
from harness.trial.watch import Watching


class InstructionWatch(Watching):
    """Looks on from outside: nothing is between engine and client."""

    def __init__(self, engine: StepEngine) -> None:
        self.step = engine.step
        self._callgrind = Callgrind()

    def window_opens(self) -> None:
        """Count from now on."""
        self._callgrind.start()

    def steps_end(self) -> None:
        """Count no more."""
        self._callgrind.stop()

    def results(self, num_rows: Int64Array) -> dict[str, float | None]:
        """Instructions per request and step. Raises ValueError where nothing has counted them."""
        counted, rows = read_dump(), int(num_rows.sum())
        self.c_functions = [
            CFunctionCost(*function, count / rows) for function, count in counted.items()
        ]
        return {"instructions_per_request_step": sum(counted.values()) / rows}
