"""What Prometheus is told: collections and pauses by kind of process, number and generation."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from harness.probed.ring import GENERATIONS
from harness.probed.series import BOUNDS_SECONDS, SUMS, CounterSeries, Place, Sums

_PLACE = ("process", "role", "number")
_LABELS = (*_PLACE, "generation")
_COUNTERS = {
    "collections": ("gc_collections", "Collections.", 1),
    "pause_ns": ("gc_pause_seconds", "Time in collections.", 1e9),
    "cpu_ns": ("gc_cpu_seconds", "CPU time of the collecting thread.", 1e9),
    "objects_freed": ("gc_objects_freed", "Objects that collections have freed.", 1),
    "lost": ("gc_collections_lost", "Collections whose length is not known.", 1),
}
"""Name, meaning and unit of each of `SUMS`."""


class ProbedMetrics(Collector):
    """Of all processes of a watch, which counts them in ``series``, and of the watch itself."""

    def __init__(self) -> None:
        self.series = CounterSeries()

    def registry(self) -> CollectorRegistry:
        """One that has nothing else."""
        registry = CollectorRegistry()
        registry.register(self)
        ProcessCollector("gcbench_probe", registry=registry)
        return registry

    def describe(self) -> list[Metric]:
        """Nothing beforehand."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All figures at this moment."""
        found = self.series.now()
        for row, field in enumerate(SUMS):
            yield _counter_family(row, field, found)
        yield _sizes_family(found)
        images = CounterMetricFamily(
            "gcbench_processes_started", "Process images that have begun.", labels=_PLACE
        )
        pids = GaugeMetricFamily("gcbench_process_pid", "Who it is now; 0: nobody.", labels=_PLACE)
        for place, sums in found:
            images.add_metric(_labels(place), sums.images)
            pids.add_metric(_labels(place), sums.pid)
        yield images
        yield pids


def _counter_family(row: int, field: str, found: list[tuple[Place, Sums]]) -> CounterMetricFamily:
    name, about, unit = _COUNTERS[field]
    family = CounterMetricFamily(f"gcbench_{name}", about, labels=_LABELS)
    for place, sums in found:
        for generation, value in enumerate(sums.totals[row].tolist()):
            family.add_metric([*_labels(place), str(generation)], value / unit)
    return family


def _sizes_family(found: list[tuple[Place, Sums]]) -> HistogramMetricFamily:
    family = HistogramMetricFamily(
        "gcbench_gc_pause_length_seconds", "Lengths of single pauses.", labels=_LABELS
    )
    bounds = [*map(str, BOUNDS_SECONDS), "+Inf"]
    pause = SUMS.index("pause_ns")
    for place, sums in found:
        for generation in range(GENERATIONS):
            counts = sums.sizes[generation].cumsum().tolist()
            family.add_metric(
                [*_labels(place), str(generation)],
                list(zip(bounds, counts, strict=True)),
                int(sums.totals[pause, generation]) / 1e9,
            )
    return family


def _labels(place: Place) -> list[str]:
    return [place.process, place.role, str(place.number)]
