"""What Prometheus is told: collections and pauses by process and generation."""

import time
from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from engines.protocol import Int64Array
from harness.probed.result import GenerationTotals, ProbedProcess
from harness.probed.watch import BOUNDS_SECONDS, RingWatch

_KEPT_SECONDS = 300.0
"""For so long a process that has ended is still told of, so that its last figures are read."""
_LABELS = ("process", "pid", "generation")


class _Counter(NamedTuple):
    name: str
    about: str
    field: str


_COUNTERS = (
    _Counter("gc_collections", "Collections.", "collections"),
    _Counter("gc_pause_seconds", "Time in collections.", "pause_seconds"),
    _Counter("gc_cpu_seconds", "CPU time of the collecting thread.", "cpu_seconds"),
    _Counter("gc_objects_freed", "Objects that collections have freed.", "objects_freed"),
    _Counter("gc_collections_lost", "Collections whose length is not known.", "lost"),
)


class ProbedMetrics(Collector):
    """Of all processes of a watch, which is there once the command runs."""

    def __init__(self) -> None:
        self.watch: RingWatch | None = None

    def registry(self) -> CollectorRegistry:
        """One that has nothing else."""
        registry = CollectorRegistry()
        registry.register(self)
        return registry

    def describe(self) -> list[Metric]:
        """Nothing beforehand."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All figures at this moment."""
        since = time.monotonic() - _KEPT_SECONDS
        shown = [
            each
            for each in (self.watch.processes if self.watch else [])
            if each.ended_at is None or each.ended_at > since
        ]
        described = []
        for each in shown:
            with each.lock:
                described.append((each.described(), each.sizes.copy()))
        for counter in _COUNTERS:
            yield _counter_family(counter, [process for process, _ in described])
        yield _sizes_family(described)


def _counter_family(counter: _Counter, processes: list[ProbedProcess]) -> CounterMetricFamily:
    family = CounterMetricFamily(f"gcbench_{counter.name}", counter.about, labels=_LABELS)
    for process in processes:
        for each in process.generations:
            family.add_metric(_labels(process, each), getattr(each, counter.field))
    return family


def _sizes_family(described: list[tuple[ProbedProcess, Int64Array]]) -> HistogramMetricFamily:
    family = HistogramMetricFamily(
        "gcbench_gc_pause_length_seconds", "Lengths of single pauses.", labels=_LABELS
    )
    bounds = [*map(str, BOUNDS_SECONDS), "+Inf"]
    for process, sizes in described:
        for each in process.generations:
            counts = sizes[each.generation].cumsum().tolist()
            family.add_metric(
                _labels(process, each), list(zip(bounds, counts, strict=True)), each.pause_seconds
            )
    return family


def _labels(process: ProbedProcess, generation: GenerationTotals) -> tuple[str, str, str]:
    return process.name, str(process.pid), str(generation.generation)
