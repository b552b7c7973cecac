"""Mode ``sites``: which lines make the objects that each collection finds."""

import tracemalloc

from engines.protocol import Int64Array, StepEngine
from harness.collector.site_log import SiteLog
from harness.collector.sites import CollectionSites
from harness.trial.tracing import start_tracing
from harness.trial.watch import Extent, Watching

_NUM_FRAMES = 4


class Sites(Watching):
    """Leaves the steps alone, and the collector as the cell has it; looks on in this process.

    Raises ValueError where `tracemalloc` runs already.
    """

    def __init__(self, engine: StepEngine, extent: Extent) -> None:
        # Before the warm-up: what it leaves would have no place.
        start_tracing(_NUM_FRAMES)
        self.step = engine.step
        self.sites: CollectionSites | None = None
        self._log = SiteLog()

    def window_opens(self) -> None:
        """From here on each collection is looked at."""
        self._log.start()

    def steps_end(self) -> None:
        """What is there now is what the steps have retained."""
        self.sites = self._log.stop()

    def results(self, num_rows: Int64Array) -> dict[str, float | None]:
        """None; tracing ends."""
        tracemalloc.stop()
        return {}
