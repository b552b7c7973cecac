"""What a server says of itself at ``/metrics``: before a run, once a second, and after it."""

import time
from collections.abc import Iterable
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
    """Asks while it is answered, a server without metrics once."""

    def __init__(self, target: Target, api_key: str = "") -> None:
        self._target, self._api_key = target, api_key
        self._answers = True
        self._said: list[tuple[int, dict[str, float]]] = []

    def ask(self) -> None:
        """Ask now."""
        if not self._answers:
            return
        try:
            status, body = get(self._target, "/metrics", _TIMEOUT_SECONDS, self._api_key)
            values = parse_metrics(body.decode()) if status == 200 else {}
        except (OSError, ValueError):
            values = {}
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


def parse_metrics(text: str) -> dict[str, float]:
    """Counters and gauges of engines and of Python. Raises ValueError for another format."""
    values: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            known = sample.name.startswith(_PREFIXES) and not sample.name.endswith(_LEFT_OUT)
            if known and isfinite(sample.value) and len(values) < _MOST_VALUES:
                values[_name(sample.name, sample.labels.items())] = sample.value
    return values


def _name(name: str, labels: Iterable[tuple[str, str]]) -> str:
    inner = ",".join(f'{key}="{value}"' for key, value in sorted(labels))
    return f"{name}{{{inner}}}" if inner else name


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
