"""What a server says of itself at ``/metrics``: before a run, once a second, and after it."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import isfinite

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from engines.openai.plain_get import get
from engines.openai.target import Target

_PREFIXES = ("gcbench:", "vllm:", "sglang:", "tgi_", "llamacpp:", "python_gc_", "process_")
_LEFT_OUT = ("_bucket", "_created")
_TIMEOUT_SECONDS = 2.0
_MOST_VALUES = 2000


class Scrape(msgspec.Struct, frozen=True, kw_only=True):
    """``seconds`` from the first moment that counts; ``values`` by name, labels included."""

    seconds: float
    values: dict[str, float]


class Scraper:
    """Asks while it is answered, servers without metrics once. Of several the series of each have
    its address as label ``server``.
    """

    def __init__(self, targets: Sequence[Target], api_key: str = "") -> None:
        self._targets, self._api_key = targets, api_key
        self._answers = True
        self._said: list[tuple[int, dict[str, float]]] = []

    def ask(self) -> None:
        """Ask now."""
        if not self._answers:
            return
        values: dict[str, float] = {}
        for target in self._targets:
            label = {"server": target.authority} if len(self._targets) > 1 else {}
            with suppress(OSError, ValueError):
                status, body = get(target, "/metrics", _TIMEOUT_SECONDS, self._api_key)
                if status == 200:
                    values |= parse_metrics(body.decode(), label)
        self._answers = bool(values) or bool(self._said)
        if values:
            self._said.append((time.perf_counter_ns(), values))

    def ask_each_second(self) -> None:
        """Ask, where the last answer is a second ago."""
        if self._said and time.perf_counter_ns() - self._said[-1][0] >= 10**9:
            self.ask()

    def scrapes(self, start_ns: int) -> list[Scrape]:
        """What was said, by the time from that moment."""
        return [Scrape(seconds=(at - start_ns) / 1e9, values=values) for at, values in self._said]


def parse_metrics(text: str, labels: Mapping[str, str] = {}) -> dict[str, float]:
    """Counters and gauges of engines and of Python, with these labels besides.

    Raises ValueError for another format.
    """
    values: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            known = sample.name.startswith(_PREFIXES) and not sample.name.endswith(_LEFT_OUT)
            if known and isfinite(sample.value) and len(values) < _MOST_VALUES:
                values[_name(sample.name, {**sample.labels, **labels}.items())] = sample.value
    return values


def _name(name: str, labels: Iterable[tuple[str, str]]) -> str:
    inner = ",".join(f'{key}="{value}"' for key, value in sorted(labels))
    return f"{name}{{{inner}}}" if inner else name


class ServerFigure(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of itself in vLLM's words. ``unit``: "s" or ""."""

    label: str
    value: float
    unit: str = ""


_MEANS = {
    "time to first token, mean": "time_to_first_token_seconds",
    "time per output token, mean": "request_time_per_output_token_seconds",
    "gap between tokens, mean": "inter_token_latency_seconds",
    "last token, mean": "e2e_request_latency_seconds",
    "in the queue, mean": "request_queue_time_seconds",
}
_RISES = {
    "prompt tokens": "prompt_tokens_total",
    "output tokens": "generation_tokens_total",
    "preemptions": "num_preemptions_total",
}
_MOST = {
    "running, most": "num_requests_running",
    "waiting, most": "num_requests_waiting",
    "KV cache used, most": "kv_cache_usage_perc",
}


def figures_of_server(scrapes: list[Scrape]) -> list[ServerFigure]:
    """Means over the run by what histograms' sums and counts rose, rises of counters, and the most
    that gauges said at any scrape; of all series of a name together.
    """
    if len(scrapes) < 2:
        return []
    first, last = scrapes[0], scrapes[-1]
    found = []
    for label, name in _MEANS.items():
        total, count = (_sum(last, f"{name}_{end}", first) for end in ("sum", "count"))
        if total is not None and count:
            found.append(ServerFigure(label=label, value=total / count, unit="s"))
    for label, name in _RISES.items():
        if (rise := _sum(last, name, first)) is not None:
            found.append(ServerFigure(label=label, value=rise))
    for label, name in _MOST.items():
        said = [value for each in scrapes if (value := _sum(each, name)) is not None]
        if said:
            found.append(ServerFigure(label=label, value=max(said)))
    return found


def _sum(scrape: Scrape, name: str, before: Scrape | None = None) -> float | None:
    """Of a name's series, less what they were before; None where there is none."""
    names = [each for each in scrape.values if each.partition("{")[0] == f"vllm:{name}"]
    if not names:
        return None
    earlier = before.values if before else {}
    return sum(scrape.values[each] - earlier.get(each, 0.0) for each in names)


def collections_of_server(scrapes: list[Scrape]) -> dict[str, float]:
    """Rise from the first scrape to the last of each series that counts collections or pauses."""
    if len(scrapes) < 2:
        return {}
    before, after = scrapes[0].values, scrapes[-1].values
    return {
        name: value - before.get(name, 0.0)
        for name, value in after.items()
        if name.startswith(("gcbench:gc_", "python_gc_collections"))
    }
