"""Metrics of requests and of gaps between their tokens, wherever these were stamped.

An in-process trial and a load generator's run both fill `RequestStamps` and gaps; what they are
called and how they are computed is here.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.protocol import Int64Array
from harness.statistics.percentile import percentile_or_none
from harness.trial.observation import Values
from harness.trial.recorder import RequestStamps
from workloads.schedule import Schedule


def median_or_none(values: NDArray[Any]) -> float | None:
    """It, None of nothing."""
    return float(np.median(values)) if len(values) else None


def _mean(values: NDArray[Any]) -> float | None:
    return float(np.mean(values)) if len(values) else None


def token_seconds(
    first_ns: Int64Array, last_ns: Int64Array, num_tokens: Int64Array
) -> NDArray[np.float64]:
    """Of each request, what a token after its first took: NaN where nobody knows the number, where
    there is one alone, and where all came at one moment, as in an answer that is no stream.
    """
    length = last_ns - first_ns
    paced = (num_tokens > 1) & (length > 0)
    seconds: NDArray[np.float64] = np.where(paced, length / 1e9, np.nan)
    return seconds / np.maximum(num_tokens - 1, 1)


def request_metrics(schedule: Schedule, requests: RequestStamps) -> Values:
    """Of the requests that have a finish reason; nothing where none has.

    Of a request below 0 tokens nobody knows how many it has.
    """
    done = requests.finish_reason >= 0
    if not done.any():
        return {}
    first, last = requests.first_ns[done] / 1e9, requests.last_ns[done] / 1e9
    sent, tokens = requests.sent_ns[done] / 1e9, requests.num_tokens[done]
    due = requests.scheduled_ns[done] / 1e9
    wall = float(last.max() - sent.min())
    ttft = first - sent
    tpot = token_seconds(requests.first_ns, requests.last_ns, requests.num_tokens)[done]
    tpot = tpot[~np.isnan(tpot)]
    # Under a cap, or for a later turn, the schedule does not say when a request could be sent.
    open_loop = not schedule.max_concurrency and not len(schedule.previous_turn)
    return {
        "request_throughput": int(done.sum()) / wall if wall else None,
        "seconds_per_request": wall / int(done.sum()) if wall else None,
        "output_throughput": int(tokens.sum()) / wall if wall and tokens.min() >= 0 else None,
        "ttft_mean": _mean(ttft),
        "ttft_median": median_or_none(ttft),
        "ttft_p99": percentile_or_none(ttft, 99),
        "ttft_from_schedule_median": median_or_none(first - due) if open_loop else None,
        "tpot_mean": _mean(tpot),
        "tpot_median": median_or_none(tpot),
        "tpot_p99": percentile_or_none(tpot, 99),
        "e2el_median": median_or_none(last - sent),
        "e2el_from_schedule_median": median_or_none(last - due) if open_loop else None,
    }


def gap_metrics(gaps_ns: Int64Array) -> Values:
    """Of every gap between two deliveries to one request, in nanoseconds."""
    gaps = gaps_ns / 1e9
    return {"itl_median": median_or_none(gaps), "itl_max": float(gaps.max()) if len(gaps) else None}
