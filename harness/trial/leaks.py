"""Mode ``leaks``: what is still there when all requests have gone, and who collected meanwhile."""

import gc
from collections.abc import Callable, Sequence
from typing import NamedTuple

from engines.protocol import Int64Array, WatchedEngine
from harness.collector import window
from harness.collector.callers import CallerLog, CollectorCall
from harness.collector.state import read_state
from harness.trial.allocated_blocks import allocated_blocks
from harness.trial.watch import Extent, Watching


class _Heap(NamedTuple):
    objects: int
    blocks: int
    freed: int


class Leaks(Watching):
    """Leaves the steps alone and counts at both ends of the window, in this process."""

    def __init__(self, engine: WatchedEngine, extent: Extent) -> None:
        self.step = engine.step
        self.calls: Sequence[CollectorCall] = ()
        self._role = engine.role
        self._log = CallerLog()
        self._before = self._after = _Heap(0, 0, 0)

    def window_opens(self) -> None:
        """Count what is there; a full collection has just gone before."""
        self._before = _heap()
        self._log.start()

    def steps_end(self) -> None:
        """Who collects from here on does not do so for a step."""
        self.calls = self._log.stop()

    def window_closes(self, let_go: Callable[[], object]) -> None:
        """Count again, once nothing is kept for the requests and no garbage is left."""
        let_go()
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
        return per_step | {"explicit_collections": sum(call.count for call in self.calls)}


def _heap() -> _Heap:
    freed = sum(generation["collected"] for generation in gc.get_stats())
    return _Heap(read_state().tracked_objects, allocated_blocks(), freed)
