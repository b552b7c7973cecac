"""What a client process is asked, and what it answers beside its arrays: JSON over a pipe."""

from typing import Any

import msgspec

from engines.openai.target import Target, parse_target
from harness.collector.result import ProcessResult
from harness.load.stops import ClientStops


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What all requests of a run have in common, without the key; it is stored with the result.

    ``request_timeout`` and ``duration``, for which requests are sent, in seconds, 0 for none.
    ``request_rate`` and ``burstiness``: as asked, None where arrivals are of another kind.
    ``real_answers``: whether later turns ask with what was answered. ``prompts``: the file of
    one's own; ``headers``: lines, of which names alone are stored.
    """

    urls: list[str]
    model: str
    prompt_as: str = "ids"
    vocab_size: int = 50257
    standard_fields: bool = False
    extra_body: dict[str, Any] = {}
    request_timeout: float = 0.0
    duration: float = 0.0
    request_rate: float | None = None
    burstiness: float | None = 1.0
    client_processes: int = 1
    client_gc: str = "disabled+freeze"
    num_warmups: int = 1
    ca_file: str = ""
    insecure: bool = False
    real_answers: bool = False
    prompts: str = ""
    headers: list[str] = []


def targets_of(asked: Asked) -> list[Target]:
    """Where the servers are, between which the requests take turns. Raises ValueError."""
    return [parse_target(url, asked.ca_file, insecure=asked.insecure) for url in asked.urls]


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One client process's part. ``keep_pieces``: whether it brings home what it recorded;
    ``watch_loop``: whether it notes when its loop was late.

    ``progress``: a descriptor of shared memory, see `progress`.
    """

    asked: Asked
    process: int
    schedule_path: str
    result_path: str
    progress: int
    api_key: str = ""
    keep_pieces: bool = False
    watch_loop: bool = False


class ClientHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How a client process itself fared from the first moment that counts to the last.

    Shares are of that time: ``cpu_share`` at work, ``waited_share`` ready while another had its
    core (None where nobody tells), ``stolen_share`` of all cores' time taken by the host's other
    guests. ``lag_*``: seconds by which a tick every ten milliseconds came late, of ``num_ticks``.
    """

    process: int
    num_requests: int
    seconds: float
    cpu_share: float
    waited_share: float | None
    stolen_share: float
    voluntary_switches: int
    involuntary_switches: int
    num_ticks: int
    lag_p90: float
    lag_p95: float
    lag_p99: float
    lag_p999: float
    lag_max: float
    num_pieces: int
    num_bytes: int
    collector: ProcessResult


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a client process says when its arrays lie where they shall."""

    health: ClientHealth
    messages: dict[int, str]
    stops: ClientStops
