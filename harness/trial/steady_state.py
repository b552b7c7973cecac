"""The part of a run in which load and step time stand still, or why there is none."""

import math
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.protocol import PHASES
from harness.statistics.percentile import percentile_or_none
from harness.trial.observation import Observation, Values

MIN_STEPS = 100
"""A window of fewer is none."""

_PEAK = 0.95
"""Share of the most requests in flight that a steady step has at least."""
_MAX_DRIFT = 0.02
"""Change of the step time over a window below which nobody would speak of a trend."""
_ALPHA = 0.01
_MOST_BLOCKS, _FEWEST_STEPS_IN_A_BLOCK = 50, 5

_Floats = NDArray[np.float64]


class SteadySteps(msgspec.Struct, frozen=True, kw_only=True, tag="steady"):
    """Of ``num_steps`` steps those from ``first`` up to but without ``after``."""

    first: int
    after: int
    num_steps: int


class UnsteadyLoad(msgspec.Struct, frozen=True, kw_only=True, tag="unsteady_load"):
    """None: load stays near its ``peak`` of requests in flight for ``longest`` steps at most."""

    peak: int
    longest: int


class DriftingSteps(msgspec.Struct, frozen=True, kw_only=True, tag="drifting"):
    """None: the load of these steps stands still, and their time moves by ``drift``, a share."""

    first: int
    after: int
    num_steps: int
    drift: float


SteadyState = SteadySteps | UnsteadyLoad | DriftingSteps


def find_steady_state(in_flight: NDArray[Any], step_ns: NDArray[Any]) -> SteadyState:
    """The longest run of steps near the peak of ``in_flight``, less its transients, if no trend.

    Both ``[num_steps]``: requests in flight as each step began, and how long it took. Step times
    are looked at as medians of up to 50 blocks, which single pauses do not move. Blocks at either
    end that raise the standard error of the mean are left out, half of the run at most (MSER,
    White 1997). A trend is a drift of 2 % or more (Theil 1950, Sen 1968) that chance would bring
    once in a hundred times at most (Mann 1945, Kendall).
    """
    peak = int(in_flight.max(initial=0))
    first, after = _longest_run((in_flight >= _PEAK * peak) & (in_flight > 0))
    if after - first < MIN_STEPS:
        return UnsteadyLoad(peak=peak, longest=after - first)
    blocks = min(_MOST_BLOCKS, (after - first) // _FEWEST_STEPS_IN_A_BLOCK)
    edges = np.linspace(first, after, blocks + 1).round().astype(np.int64).tolist()
    medians = np.array([np.median(step_ns[a:b]) for a, b in pairwise(edges)])
    needed = math.ceil(blocks * MIN_STEPS / (after - first))
    spare = blocks - max(math.ceil(blocks / 2), needed)
    front = transient(medians, spare)
    back = transient(medians[front:][::-1], spare - front)
    kept = medians[front : blocks - back]
    first, after = edges[front], edges[blocks - back]
    drift, p_value = trend(kept)
    if abs(drift) >= _MAX_DRIFT and p_value < _ALPHA:
        return DriftingSteps(first=first, after=after, num_steps=len(step_ns), drift=drift)
    return SteadySteps(first=first, after=after, num_steps=len(step_ns))


def _longest_run(mask: NDArray[np.bool_]) -> tuple[int, int]:
    """Where the longest row of true values begins, and where it is over; the first of equals."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False]))))
    starts, ends = edges[::2], edges[1::2]
    if not len(starts):
        return 0, 0
    longest = int(np.argmax(ends - starts))
    return int(starts[longest]), int(ends[longest])


def transient(values: _Floats, most: int) -> int:
    """How many values at the beginning, ``most`` at most, MSER leaves out.

    What is left has the least sum of squared deviations / number² (White, Simulation 69, 1997).
    """
    kept = len(values) - np.arange(most + 1)
    centred = values - np.median(values)
    sums = np.cumsum(centred[::-1])[::-1][: most + 1]
    squares = np.cumsum(centred[::-1] ** 2)[::-1][: most + 1]
    return int(np.argmin((squares - sums**2 / kept) / kept**2))


def trend(values: _Floats) -> tuple[float, float]:
    """Drift from the first value to past the last, relative to their median, and its p-value.

    Theil and Sen's slope; Mann and Kendall's test with ties, by the normal approximation.
    """
    n = len(values)
    earlier, later = np.triu_indices(n, 1)
    rises = values[later] - values[earlier]
    change = float(np.median(rises / (later - earlier))) * n
    ties = np.unique(values, return_counts=True)[1]
    variance = (n * (n - 1) * (2 * n + 5) - (ties * (ties - 1) * (2 * ties + 5)).sum()) / 18
    score = abs(float(np.sign(rises).sum()))
    z = score / math.sqrt(variance) if variance else 0.0
    return change / (float(np.median(values)) or 1.0), math.erfc(z / math.sqrt(2))


_STEADY_METRICS = (
    "steady_share",
    "steady_output_throughput",
    "steady_itl_p99",
    "steady_step_time_median",
    "steady_host_time_per_request_step",
    "steady_gc_pause_share",
)


def steady_metrics(seen: Observation, steady: SteadyState) -> Values:
    """The metrics of a window beside those of the whole run; None where there is no window."""
    if not isinstance(steady, SteadySteps):
        return dict.fromkeys(_STEADY_METRICS)
    steps = slice(steady.first, steady.after)
    delivered = seen.column("delivered")[steps]
    # The first step's tokens came before the time between deliveries begins.
    seconds = int(delivered[-1] - delivered[0]) / 1e9
    tokens = int(seen.column("num_tokens")[steps][1:].sum())
    worst = seen.column("worst_gap_ns")[steps]
    rows = seen.column("num_rows")[steps]
    length = seen.length_ns[steps][rows > 0]
    host = int(seen.host_ns[steps].sum())
    begin, end = seen.steps[steady.first, 0], seen.steps[steady.after - 1, len(PHASES)]
    pauses = seen.events[seen.engine]
    within = (pauses.start_ns >= begin) & (pauses.start_ns < end)
    values = (
        (steady.after - steady.first) / len(seen.steps),
        tokens / seconds,
        percentile_or_none(worst[worst > 0] / 1e9, 99),
        float(np.median(length)) / 1e9 if len(length) else None,
        host / 1e9 / max(1, int(rows.sum())),
        int(pauses.duration_ns[within].sum()) / 1e9 / seconds,
    )
    return dict(zip(_STEADY_METRICS, values, strict=True))
