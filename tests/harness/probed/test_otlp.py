"""An OpenTelemetry collector is sent the figures that Prometheus is served."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality
from opentelemetry.sdk.resources import Resource
from otlp_receiver import metrics_in, points_in
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from harness.probed.exposition import ProbedMetrics
from harness.probed.otlp import OtlpExport
from harness.probed.otlp_data import metrics_data
from harness.probed.series import BOUNDS_SECONDS, SUMS

BEGAN_NS, NOW_NS = 1_000, 2_000
NAMES = st.sampled_from(["app.py", "ForkPoolWorker-1", "worker ☃"])


@given(
    st.lists(st.tuples(NAMES, st.integers(0, 2**32), st.sampled_from([1, 9, 2**40])), max_size=5)
)
def test_sums_histograms_and_gauges_are_those_of_prometheus(images):
    metrics = ProbedMetrics()
    for name, seed, most in images:
        drawn = np.random.default_rng(seed)
        totals = drawn.integers(most, size=(len(SUMS), 3))
        sizes = drawn.integers(most, size=(3, len(BOUNDS_SECONDS) + 1))
        metrics.series.add(metrics.series.enter(name, "fork", 7), totals, sizes)
    data = metrics_data(metrics.collect(), Resource({}), BEGAN_NS, NOW_NS)
    sent = metrics_in(encode_metrics(data))
    wanted = {
        each.name: each
        for each in text_string_to_metric_families(generate_latest(metrics).decode())
        if each.samples
    }
    assert sent.keys() == wanted.keys()
    for name, family in wanted.items():
        metric, points = sent[name], points_in(sent[name])
        kind = {"counter": "sum", "gauge": "gauge", "histogram": "histogram"}[family.type]
        assert metric.WhichOneof("data") == kind
        assert metric.description == family.documentation
        assert metric.unit == ("s" if name.endswith("_seconds") else "")
        found = {}
        for labels, point in points.items():
            assert point.time_unix_nano == NOW_NS
            if kind != "histogram":
                found[labels, ""] = point.as_double
                continue
            found[labels, "_count"], found[labels, "_sum"] = point.count, point.sum
            assert tuple(point.explicit_bounds) == BOUNDS_SECONDS
            assert [point.HasField("min"), point.HasField("max")] == [False, False]
            below = np.cumsum(point.bucket_counts).tolist()
            for bound, count in zip([*BOUNDS_SECONDS, "+Inf"], below, strict=True):
                found[labels, f"_bucket{bound}"] = count
        if kind != "gauge":
            body = getattr(metric, kind)
            assert body.aggregation_temporality == AggregationTemporality.Value(
                "AGGREGATION_TEMPORALITY_CUMULATIVE"
            )
            assert {point.start_time_unix_nano for point in points.values()} == {BEGAN_NS}
        if kind == "sum":
            assert metric.sum.is_monotonic
        assert found == {
            (
                tuple(sorted(f"{k}={v}" for k, v in sample.labels.items() if k != "le")),
                sample.name.removeprefix(name).removesuffix("_total") + sample.labels.get("le", ""),
            ): sample.value
            for sample in family.samples
        }


@pytest.mark.parametrize(
    "url", ["", "x", "127.0.0.1:4318", "grpc://h:4317", "http://", "http://h:x", "http://h:0"]
)
def test_what_is_no_url_of_a_collector_is_a_sentence(url):
    with pytest.raises(ValueError, match=r"^--otlp .*: give http://HOST:PORT of a collector"):
        OtlpExport(url, ProbedMetrics().registry())


@pytest.mark.parametrize("interval", ["x", "0", "-1", "nan", "inf"])
def test_what_is_no_interval_is_a_sentence(interval, monkeypatch):
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", interval)
    with pytest.raises(ValueError, match=rf"INTERVAL is '{interval}': give milliseconds$"):
        OtlpExport("http://127.0.0.1:1", ProbedMetrics().registry())
