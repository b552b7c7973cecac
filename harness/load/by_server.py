"""Each server's part of a run that several of them share."""

import msgspec

from harness.load.deal import in_turns
from harness.load.observed import Observed
from harness.trial.recorder import RequestStamps
from harness.trial.request_metrics import request_metrics

_NAMES = ("request_throughput", "ttft_median", "tpot_median", "e2el_median")


class ServerPart(msgspec.Struct, frozen=True, kw_only=True):
    """``metrics``: those of the run, of its own requests."""

    url: str
    num_attempted: int
    num_completed: int
    metrics: dict[str, float | None]


def server_parts(observed: Observed, requests: RequestStamps) -> list[ServerPart]:
    """In the order of their addresses; none where one server has all."""
    urls, responses = observed.asked.urls, observed.responses
    if len(urls) < 2:
        return []
    whose = in_turns(observed.schedule, len(urls))
    found = []
    for place, url in enumerate(urls):
        own = whose == place
        metrics = request_metrics(
            observed.schedule, RequestStamps(*(column[own] for column in requests))
        )
        found.append(
            ServerPart(
                url=url,
                num_attempted=int((responses.attempted & own).sum()),
                num_completed=int((responses.completed & own).sum()),
                metrics={name: metrics.get(name) for name in _NAMES},
            )
        )
    return found
