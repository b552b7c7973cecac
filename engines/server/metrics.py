"""``/metrics``: vLLM's names where it has them, and each process's collector."""

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from engines.server.engine_client import EngineClient

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

ProcessTotals = Mapping[str, Sequence[float]]
"""What a process's collector has done so far: a figure's name to its values by generation."""

_LABELS = ("model_name", "engine")
_TTFT_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
_LATENCY_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
_PER_TOKEN_SECONDS = (
    0.0001,
    0.0002,
    0.0005,
    0.001,
    0.002,
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1,
)


class ServerMetrics(Collector):
    """A registry of its own: two servers in one process do not add up."""

    def __init__(self, client: EngineClient, model: str) -> None:
        self._client = client
        self._values = (model, "0")
        self._totals: Mapping[str, ProcessTotals] = {}
        self._registry = CollectorRegistry()
        self._num_prompt_tokens = 0
        self._num_tokens_before = client.num_tokens
        self._success = Counter(
            "vllm:request_success",
            "Requests that ended, by reason.",
            (*_LABELS, "finished_reason"),
            registry=self._registry,
        )
        self._ttft = self._histogram(
            "vllm:time_to_first_token_seconds", "From arrival to the first output.", _TTFT_SECONDS
        )
        self._latency = self._histogram(
            "vllm:e2e_request_latency_seconds", "From arrival to the last output.", _LATENCY_SECONDS
        )
        self._per_token = self._histogram(
            "vllm:request_time_per_output_token_seconds",
            "A request's mean time for each token after its first output.",
            _PER_TOKEN_SECONDS,
        )
        self._registry.register(self)

    def _histogram(self, name: str, text: str, buckets: Sequence[float]) -> Histogram:
        made = Histogram(name, text, _LABELS, buckets=buckets, registry=self._registry)
        return made.labels(*self._values)

    def finished(
        self, reason: str, *, num_prompt_tokens: int, num_tokens: int, ttft: float, latency: float
    ) -> None:
        """A request has ended, after ``latency`` seconds."""
        self._num_prompt_tokens += num_prompt_tokens
        self._success.labels(*self._values, reason).inc()
        if num_tokens:
            self._ttft.observe(ttft)
            self._latency.observe(latency)
        if num_tokens > 1:
            self._per_token.observe((latency - ttft) / (num_tokens - 1))

    def aborted(self, num_prompt_tokens: int) -> None:
        """The client of a request has left."""
        self._num_prompt_tokens += num_prompt_tokens
        self._success.labels(*self._values, "abort").inc()

    def text(self, totals: Mapping[str, ProcessTotals]) -> bytes:
        """All of it; ``totals`` are the processes', by name."""
        self._totals = totals
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """What is read off the client at this moment."""
        client = self._client
        for name, help_text, number in (
            ("running", "Requests that the scheduler has begun.", client.num_running),
            ("waiting", "Requests that it has not.", client.num_waiting),
        ):
            gauge = GaugeMetricFamily(f"vllm:num_requests_{name}", help_text, labels=_LABELS)
            gauge.add_metric(self._values, number)
            yield gauge
        for name, help_text, number in (
            ("prompt", "Tokens of the prompts of requests that ended.", self._num_prompt_tokens),
            ("generation", "Tokens of outputs.", client.num_tokens - self._num_tokens_before),
        ):
            counter = CounterMetricFamily(f"vllm:{name}_tokens", help_text, labels=_LABELS)
            counter.add_metric(self._values, number)
            yield counter
        yield from self._collectors()

    def _collectors(self) -> Iterator[Metric]:
        for figure in dict.fromkeys(name for each in self._totals.values() for name in each):
            family = CounterMetricFamily(
                f"gcbench:{figure}", "Of CPython's collector.", labels=("process", "generation")
            )
            for process, totals in self._totals.items():
                for generation, value in enumerate(totals.get(figure, ())):
                    family.add_metric((process, str(generation)), value)
            yield family
