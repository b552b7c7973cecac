"""What a schedule looks like: lengths, what prompts share, how arrivals are spread."""

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from workloads.arrival_check import MIN_GAPS, ArrivalCheck, deviations
from workloads.prefixes import seen_before
from workloads.schedule import Schedule
from workloads.workload import Workload

SUMMARY_SCHEMA = "gcbench.workload/1"

PREFIX_BLOCK_TOKENS = 16

_LOG_FROM = 50
"""Lengths whose largest is so many times the smallest are counted in bins of equal ratio."""


class Bins(msgspec.Struct, frozen=True):
    """``counts[i]`` lie from ``edges[i]`` up to ``edges[i + 1]``, which is excluded."""

    edges: list[float]
    counts: list[int]
    is_log: bool = False


class TokenLengths(msgspec.Struct, frozen=True):
    """Lengths in tokens; quantiles are lengths that occur."""

    mean: float
    p50: int
    p90: int
    p99: int
    max: int
    total: int
    bins: Bins


class ArrivalSummary(msgspec.Struct, frozen=True):
    """Arrivals over time. ``verdict``: whether they are spread as was asked, or why none is given.

    ``check`` is of conversations where there are turns, and by the clock on which their rate is
    constant. ``asked_gap_cv`` is null where none was asked for.
    """

    last_seconds: float
    bins: Bins
    check: ArrivalCheck
    asked_gap_cv: float | None
    verdict: str
    deviations: list[str]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A workload realised with a seed. ``workload`` is the recipe as it was given.

    ``seen_before_share``: of the prompts' tokens, those that an earlier prompt begins with too,
    in blocks of 16. ``num_conversations``, ``most_turns``: 0 where requests are no turns.
    """

    schema: str = SUMMARY_SCHEMA
    name: str
    seed: int
    hash: str
    num_requests: int
    bad_rows: int
    max_concurrency: int
    prompt_tokens: TokenLengths
    output_tokens: TokenLengths
    arrivals: ArrivalSummary
    mean_tokens_per_step: float
    max_tokens_per_step: int
    seen_before_share: float
    num_conversations: int
    most_turns: int
    workload: Workload


def summarise_workload(workload: Workload, schedule: Schedule, seed: int) -> Summary:
    """Summarise what ``workload`` was realised into with ``seed``."""
    turns = _turns(schedule)
    shared = seen_before(schedule, PREFIX_BLOCK_TOKENS).sum()
    return Summary(
        name=schedule.name,
        seed=seed,
        hash=schedule.sha256,
        num_requests=schedule.num_requests,
        bad_rows=schedule.bad_rows,
        max_concurrency=schedule.max_concurrency,
        prompt_tokens=_lengths(schedule.prompt_lens),
        output_tokens=_lengths(schedule.output_lens),
        arrivals=_arrivals(workload, schedule),
        mean_tokens_per_step=float(schedule.num_accepted.mean()),
        max_tokens_per_step=int(schedule.num_accepted.max()),
        seen_before_share=float(shared / schedule.prompt_lens.sum(dtype=np.int64)),
        num_conversations=int((turns == 1).sum()),
        most_turns=int(turns.max(initial=0)),
        workload=workload,
    )


def _lengths(lens: NDArray[np.int32]) -> TokenLengths:
    p50, p90, p99 = np.percentile(lens, [50, 90, 99], method="inverted_cdf").tolist()
    return TokenLengths(
        mean=float(lens.mean()),
        p50=int(p50),
        p90=int(p90),
        p99=int(p99),
        max=int(lens.max()),
        total=int(lens.sum(dtype=np.int64)),
        bins=length_bins(lens),
    )


def length_bins(lens: ArrayLike, most_bins: int = 40) -> Bins:
    """Counts of whole numbers in bins whose edges are whole numbers too."""
    values = np.asarray(lens)
    low, high = int(values.min()), int(values.max())
    is_log = high >= _LOG_FROM * low
    if high - low < most_bins:
        edges = np.arange(low, high + 2)
    elif is_log:
        edges = np.unique(np.ceil(np.geomspace(low, high + 1, most_bins + 1)).astype(np.int64))
        edges[0], edges[-1] = low, high + 1
    else:
        width = -(-(high + 1 - low) // most_bins)
        edges = np.arange(low, high + 1 + width, width)
    # The last bin of np.histogram would include its right edge; no length reaches it.
    counts, _ = np.histogram(values, edges)
    return Bins(edges.astype(float).tolist(), counts.tolist(), is_log and high - low >= most_bins)


def _arrivals(workload: Workload, schedule: Schedule, num_bins: int = 80) -> ArrivalSummary:
    last = float(schedule.arrival_seconds[-1])
    counts, edges = np.histogram(schedule.arrival_seconds, num_bins, (0, last or 1.0))
    check, asked = workload.check_arrivals(schedule), workload.gap_cv
    found = [] if asked is None else deviations(check, asked)
    return ArrivalSummary(
        last_seconds=last,
        bins=Bins(edges.tolist(), counts.tolist()),
        check=check,
        asked_gap_cv=asked,
        verdict=_verdict(check, asked, found),
        deviations=found,
    )


def _verdict(check: ArrivalCheck, asked: float | None, found: list[str]) -> str:
    if asked is None:
        return "nothing asked for"
    if check.gap_cv is None or check.num_gaps < MIN_GAPS:
        return f"too few to judge: {check.num_gaps} gaps, {MIN_GAPS} are needed"
    return "not as asked" if found else "as asked"


def _turns(schedule: Schedule) -> NDArray[np.int64]:
    """Which turn of its conversation each request is, from 1; empty where there are none."""
    turns = np.ones(len(schedule.previous_turn), np.int64)
    for i in np.flatnonzero(schedule.previous_turn >= 0).tolist():
        turns[i] = turns[schedule.previous_turn[i]] + 1
    return turns
