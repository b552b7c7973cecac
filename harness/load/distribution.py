"""Percentiles of a run's latencies, each with its interval where there are samples enough."""

from math import ceil, floor, sqrt
from statistics import NormalDist

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.statistics.percentile import percentile_or_none
from harness.trial.recorder import RequestStamps
from harness.trial.request_metrics import token_seconds

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)
_FEWEST = 6
"""Of fewer samples no two ranks hold the median between them with 95 % confidence."""


class Percentile(msgspec.Struct, frozen=True, kw_only=True):
    """``q`` of 100; seconds. ``ci95``: by order statistics of independent samples."""

    q: float
    value: float
    ci95: tuple[float, float]


def percentiles_of(seconds: NDArray[np.float64], more: float) -> list[Percentile]:
    """Those of `PERCENTILES` and ``more`` that so many samples can tell."""
    ordered, found = np.sort(seconds), list[Percentile]()
    if len(ordered) < _FEWEST:
        return found
    for q in sorted({*PERCENTILES, more}):
        value = percentile_or_none(ordered, q)
        if value is not None:
            low, high = _ranks(len(ordered), q / 100)
            ci95 = (float(ordered[low]), float(ordered[high]))
            found.append(Percentile(q=q, value=value, ci95=ci95))
    return found


def _ranks(n: int, p: float) -> tuple[int, int]:
    """Places between which the quantile lies with 95 % confidence, cut at the ends."""
    spread = NormalDist().inv_cdf(0.975) * sqrt(n * p * (1 - p))
    return max(floor(n * p - spread) - 1, 0), min(ceil(n * p + spread), n - 1)


def distribution(requests: RequestStamps, more: float) -> dict[str, list[Percentile]]:
    """Of completed requests' latencies, by name."""
    done = requests.finish_reason >= 0
    first, last, sent = (
        each[done] for each in (requests.first_ns, requests.last_ns, requests.sent_ns)
    )
    tpot = token_seconds(requests.first_ns, requests.last_ns, requests.num_tokens)[done]
    values = {
        "ttft": (first - sent) / 1e9,
        "tpot": tpot[~np.isnan(tpot)],
        "e2el": (last - sent) / 1e9,
    }
    found = {name: percentiles_of(each, more) for name, each in values.items()}
    return {name: each for name, each in found.items() if each}
