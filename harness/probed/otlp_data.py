"""Prometheus's families as data of OpenTelemetry's SDK, whose histograms cannot be observed."""

from collections.abc import Iterable
from itertools import groupby, pairwise

from opentelemetry.sdk.metrics import export as sdk
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.core import Metric
from prometheus_client.samples import Sample

_UNITS = {"seconds": "s", "bytes": "By"}
_CUMULATIVE = sdk.AggregationTemporality.CUMULATIVE


def metrics_data(
    families: Iterable[Metric], resource: Resource, began_ns: int, now_ns: int
) -> sdk.MetricsData:
    """Counters as sums since ``began_ns`` (Unix time), histograms and gauges as they are, and
    labels as attributes. A family without samples is left out.
    """
    metrics = [_metric(each, began_ns, now_ns) for each in families if each.samples]
    scope = sdk.ScopeMetrics(InstrumentationScope("gcbench"), metrics, "")
    return sdk.MetricsData([sdk.ResourceMetrics(resource, [scope], "")])


def _metric(family: Metric, began_ns: int, now_ns: int) -> sdk.Metric:
    data: sdk.Sum | sdk.Gauge | sdk.Histogram
    if family.type == "histogram":
        data = sdk.Histogram(
            [
                _histogram_point(list(samples), labels, began_ns, now_ns)
                for labels, samples in groupby(family.samples, _labels_of_histogram)
            ],
            _CUMULATIVE,
        )
    else:
        points = [
            sdk.NumberDataPoint(each.labels, began_ns, now_ns, float(each.value))
            for each in family.samples
        ]
        is_sum = family.type == "counter"
        data = sdk.Sum(points, _CUMULATIVE, is_monotonic=True) if is_sum else sdk.Gauge(points)
    unit = _UNITS.get(family.name.split("_")[-1], "")
    return sdk.Metric(family.name, family.documentation, unit, data)


def _labels_of_histogram(sample: Sample) -> dict[str, str]:
    return {name: value for name, value in sample.labels.items() if name != "le"}


def _histogram_point(
    samples: list[Sample], labels: dict[str, str], began_ns: int, now_ns: int
) -> sdk.HistogramDataPoint:
    *buckets, count, total = samples
    below = [0, *(int(each.value) for each in buckets)]  # Prometheus's classes hold those before
    return sdk.HistogramDataPoint(
        labels,
        began_ns,
        now_ns,
        int(count.value),
        total.value,
        [more - fewer for fewer, more in pairwise(below)],
        [float(each.labels["le"]) for each in buckets[:-1]],
        min=None,  # type: ignore[arg-type] # not known, and OTLP has a field that may be left out
        max=None,  # type: ignore[arg-type]
    )
