"""What an OpenTelemetry collector is to `gcbench probe --otlp`: it takes what comes, decoded."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

Series = tuple[str, ...]


@contextmanager
def receiving(statuses: tuple[int, ...] = (200,)) -> Iterator[tuple[str, list[Any]]]:
    """Its URL, and the requests that have come; the last status is that of all later answers."""
    came: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came.append((self.path, self.headers, ExportMetricsServiceRequest.FromString(body)))
            self.send_response(statuses[min(len(came), len(statuses)) - 1])
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", came
        finally:
            server.shutdown()
            thread.join()


def metrics_in(request: ExportMetricsServiceRequest) -> dict[str, Any]:
    """By name; each comes once."""
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics
    found = {each.name: each for each in scope.metrics}
    assert len(found) == len(scope.metrics)
    return found


def points_in(metric: Any) -> dict[Series, Any]:
    """By attributes, as ``name=value``."""
    found = getattr(metric, metric.WhichOneof("data")).data_points
    return {
        tuple(sorted(f"{each.key}={each.value.string_value}" for each in point.attributes)): point
        for point in found
    }
