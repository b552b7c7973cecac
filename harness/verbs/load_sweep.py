"""Loads one after the other, until it is known where a server's throughput ends."""

from math import ceil, sqrt
from typing import Any

from msgspec.structs import replace

from harness import format as fmt
from harness.experiment.store import new_name
from harness.load.goodput import parse_objectives
from harness.load.result import LoadResult
from harness.load.sweep import (
    InvalidPointError,
    KneeError,
    KneeSearch,
    SweepKind,
    SweepPoint,
    SweepResult,
)
from harness.result.result import keep_result
from harness.verbs.caller import Caller
from harness.verbs.load import ask_server
from harness.verbs.load_request import LoadRequest

_SECONDS = 20.0
"""Of each load, unless `--duration` says otherwise."""
_LATENCIES = ("ttft_median", "ttft_p99", "tpot_median", "e2el_median")
_FIRST_REQUESTS = 1000
"""With the first number of streams, when nobody knows yet how many requests come to an end."""
_OF_OVERLOAD = ("failed",)
"""Rules that a load may break which asks for more than the server gives."""


def sweep_server(request: LoadRequest, caller: Caller, api_key: str = "") -> SweepResult:
    """Find it. Raises ValueError for what cannot be asked, EngineDeadError where the server is not
    there.
    """
    kind, start = _parsed(request)
    loads = _Loads(request, kind, caller, api_key)
    search = KneeSearch(kind, loads.load)
    notes, knee, kept = list[str](), None, None
    try:
        knee = search.knee(start)
        search.around(knee)
        if request.goodput:
            kept = search.kept()
    except (InvalidPointError, KneeError) as error:
        notes.append(fmt.capitalised(f"{error}."))
    last = loads.last
    assert last is not None
    result = SweepResult(
        name=new_name(request.output, f"sweep-{last.trial.cell.workload}"),
        command=caller.command,
        machine=last.machine,
        workloads=last.workloads,
        kind_of=kind,
        asked=last.asked,
        points=sorted(search.points, key=lambda each: each.asked),
        knee=knee,
        kept=kept,
        objectives=parse_objectives(request.goodput) if request.goodput else {},
        notes=notes,
    )
    keep_result(request.output, result)
    return result


class _Loads:
    """Makes loads that differ in one number. ``last``: what the last of them came to."""

    def __init__(self, request: LoadRequest, kind: SweepKind, caller: Caller, api_key: str) -> None:
        self._request, self._kind = request, kind
        self._caller, self._api_key = caller, api_key
        self._seconds = request.duration or _SECONDS
        self._served = 0.0
        self.last: LoadResult | None = None

    def load(self, value: float) -> SweepPoint:
        """At so many requests per second, or with so many streams."""
        self._caller.say(f"sweep: {self._kind} {value:.4g}")
        changes: dict[str, Any] = {"sweep": "", "duration": self._seconds}
        if self._kind == "rate":
            changes |= {"request_rate": value, "num_requests": self._most(value)}
        else:
            most = self._most(2 * self._served) if self._served else _FIRST_REQUESTS
            changes |= {"max_concurrency": int(value), "arrivals": "at_once"}
            changes["num_requests"] = most + int(value)
        if self.last is not None:
            changes |= {"num_warmups": 0, "wait_for": 0.0}  # it is warm, and was looked at
        loaded = ask_server(replace(self._request, **changes), self._caller, self._api_key)
        if loaded.observed.is_interrupted:
            raise KeyboardInterrupt
        result = self.last = loaded.result
        if result.steady is not None:
            self._served = result.steady.served
        metrics = result.trial.metrics
        return SweepPoint(
            asked=value,
            run=result.name,
            invalid="; ".join(
                each.sentence for each in result.broken if each.rule not in _OF_OVERLOAD
            ),
            steady=result.steady,
            latencies={name: metrics.get(name) for name in _LATENCIES},
            output_throughput=metrics.get("output_throughput"),
            goodput=result.goodput,
        )

    def _most(self, rate: float) -> int:
        """More requests than come in the time."""
        mean = rate * self._seconds
        return ceil(mean + 5 * sqrt(mean) + 10)


def _parsed(request: LoadRequest) -> tuple[SweepKind, float]:
    """What varies, and from where on. Raises ValueError."""
    kind, colon, start = request.sweep.partition(":")
    try:
        first = float(start) if colon else 1.0
    except ValueError:
        first = 0
    if kind not in ("rate", "concurrency") or not 0 < first < 1e6:
        raise ValueError(f"--sweep {request.sweep}: give rate, concurrency, or KIND:START")
    taken = request.request_rate is not None or request.arrivals
    if taken or request.max_concurrency is not None or request.replay is not None:
        raise ValueError(
            "--sweep: says itself how many requests come; leave out --request-rate, "
            "--max-concurrency, --axis arrivals and --replay"
        )
    if request.probe is not None or request.log is not None:
        raise ValueError("--sweep: makes many loads; --probe and --log are of one")
    return ("rate", first) if kind == "rate" else ("concurrency", max(1.0, round(first)))
