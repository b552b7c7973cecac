"""Mode ``leaks``: what is still there when all requests have gone, and who collected meanwhile."""

import gc
from collections.abc import Callable
from typing import NamedTuple

from engines.protocol import Int64Array, StepEngine
from harness.collector import window
from harness.collector.callers import CallerLog, CollectorCall, SettingLog
from harness.collector.state import read_state
from harness.trial.allocated_blocks import allocated_blocks
from harness.trial.answers import Answers
from harness.trial.watch import Extent, Watching


class _Heap(NamedTuple):
    objects: int
    blocks: int
    freed: int


class Leaks(Watching):
    """Leaves the steps alone and counts at both ends of the window, in this process.

    What it has at the end it has when the window opens, or its own objects would be counted.
    """

    def __init__(self, engine: StepEngine, extent: Extent) -> None:
        self.step = engine.step
        self.calls: list[CollectorCall] = list(extent.settings)
        self._role = engine.role
        self._log, self._settings = CallerLog(), SettingLog()
        self._before, self._after = _Heap(0, 0, 0), _Heap(0, 0, 0)
        # A first step, which is warm-up's, may set it, too.
        self._settings.start(are_carried_out=True)

    def window_opens(self) -> None:
        """Count what is there, once no garbage is left, as at the end."""
        self.calls += self._settings.stop()
        window.collect_aside(self._role)
        self._before = _heap()
        self._log.start()
        # The window's policy stays in force, so that what sets it can be counted.
        self._settings.start(are_carried_out=False)

    def steps_end(self) -> None:
        """Who collects from here on does not do so for a step."""
        self.calls[:0] = self._log.stop()
        self.calls += self._settings.stop()

    def window_closes(self, answers: Answers) -> None:
        """Count again, once nothing is kept for the requests and no garbage is left."""
        answers.let_go()
        window.collect_aside(self._role)
        self._after = _heap()

    def results(self, num_rows: Int64Array) -> dict[str, float | None]:
        """What a step has left for good, on the average over the window."""
        steps = max(1, len(num_rows))
        rise = [after - before for before, after in zip(self._before, self._after, strict=True)]
        names = ("leaked_objects_per_step", "leaked_blocks_per_step", "cyclic_garbage_per_step")
        per_step: dict[str, float | None] = dict(
            zip(names, (each / steps for each in rise), strict=True)
        )
        return per_step | {
            "explicit_collections": self._count(lambda call: call.generation >= 0),
            "collector_setting_calls": self._count(lambda call: call.generation < 0),
        }

    def _count(self, is_one: Callable[[CollectorCall], bool]) -> int:
        return sum(call.count for call in self.calls if is_one(call))


def _heap() -> _Heap:
    freed = sum(generation["collected"] for generation in gc.get_stats())
    return _Heap(read_state().tracked_objects, allocated_blocks(), freed)
