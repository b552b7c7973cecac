"""What Prometheus is told, sent to an OpenTelemetry collector by its SDK: OTLP over HTTP."""

import logging
import os
import time
from contextlib import suppress
from threading import Event, Thread
from urllib.parse import urlsplit

import psutil
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import MetricExportResult
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from prometheus_client import CollectorRegistry

from harness.probed.forwarded import held_back
from harness.probed.otlp_data import metrics_data

_END_SECONDS = 3.0
"""A collector that does not answer keeps nobody longer."""
_MOST_SAID = 200
_MOST_MS = 1e9
_PATH = "/v1/metrics"


class OtlpExport:
    """Sends ``registry``'s figures to ``url`` every ten seconds or `OTEL_METRIC_EXPORT_INTERVAL`.

    The SDK's other variables hold, too. A thread does it, so nobody waits for the collector but in
    `finish`. Raises ValueError for a URL or an interval that is none.
    """

    def __init__(self, url: str, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._exporter = OTLPMetricExporter(endpoint=_endpoint(url))
        named = Resource({SERVICE_NAME: "gcbench-probe"}).merge(OTELResourceDetector().detect())
        self._resource = Resource.create().merge(named)
        self._began_ns = int(psutil.Process().create_time() * 1e9)
        self._interval_seconds = _interval_seconds()
        self._tried = self._failed = 0
        self._cause = ""
        self._log = _FirstSaid()
        self._end = Event()
        self._thread = Thread(target=self._run, daemon=True)
        with held_back():
            self._thread.start()

    def finish(self) -> str:
        """Send what there is at the end, in three seconds; a sentence where not all arrived."""
        self._end.set()
        self._thread.join(_END_SECONDS)
        if self._thread.is_alive():
            self._has_failed(self._log.said or f"no answer in {_END_SECONDS:.0f} seconds")
        elif not self._failed:
            return ""
        elif self._has_arrived:
            self._cause += "; the last arrived, with all figures"
        return f"{self._failed:,} of {self._tried:,} exports by --otlp failed: {self._cause}."

    def _run(self) -> None:
        while not self._end.wait(self._interval_seconds):
            self._send()
        self._send()

    def _send(self) -> None:
        self._tried += 1
        self._log.said = ""
        try:
            data = metrics_data(
                self._registry.collect(), self._resource, self._began_ns, time.time_ns()
            )
            result = self._exporter.export(data)
        except Exception as error:  # the next is tried all the same
            self._has_failed(_first_cause(error))
            return
        self._has_arrived = result is MetricExportResult.SUCCESS
        if not self._has_arrived:
            self._has_failed(self._log.said)

    def _has_failed(self, cause: str) -> None:
        self._failed += 1
        self._cause, self._has_arrived = cause, False


class _FirstSaid(logging.Handler):
    """Keeps the first that the SDK logs of an export, which names the cause, off the terminal,
    where it says before what is wrong with its variables.
    """

    def __init__(self) -> None:
        super().__init__()
        self.said = ""
        logger = logging.getLogger("opentelemetry")
        logger.addHandler(self)
        logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Only while nothing else is kept."""
        errors = [each for each in record.args or () if isinstance(each, BaseException)]
        said = _first_cause(errors[0]) if errors else record.getMessage()
        self.said = self.said or said[:_MOST_SAID]


def _first_cause(error: BaseException) -> str:
    """What led to all the others, which repeat the URL and what is secret in it."""
    while error.__context__:
        error = error.__context__
    return str(error) or repr(error)


def _endpoint(url: str) -> str:
    """Where ``url``, with the path of metrics or without, takes them."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        raise ValueError(f"--otlp {url}: give http://HOST:PORT of a collector that takes OTLP")
    path = parts.path.rstrip("/").removesuffix(_PATH) + _PATH
    return parts._replace(path=path).geturl()


def _interval_seconds() -> float:
    """Of `OTEL_METRIC_EXPORT_INTERVAL`, which is in milliseconds."""
    given = os.environ.get("OTEL_METRIC_EXPORT_INTERVAL") or "10000"
    with suppress(ValueError):
        if 0 < (milliseconds := float(given)) < _MOST_MS:
            return milliseconds / 1000
    raise ValueError(f"OTEL_METRIC_EXPORT_INTERVAL is {given!r}: give milliseconds")
