"""What was sent against what was scheduled: whether requests came as they were asked to."""

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness import format as fmt
from harness.statistics.percentile import percentile_or_none
from harness.trial.arrivals import comes_by_itself
from harness.trial.observation import Values
from harness.trial.recorder import RequestStamps
from workloads.arrival_check import MIN_WINDOWS, check_arrivals
from workloads.schedule import Schedule

MIN_REQUESTS = 20
"""Of fewer nothing is said."""

_ALLOWED = {
    "gaps' CV": (0.02, 0.05),
    "lag-1 correlation": (0.1, 0.0),
    "dispersion": (0.25, 0.25),
    "jitter": (0.25, 0.0),
}
"""How far a figure of what was sent may lie from the schedule's own: the larger of an amount and
of a share. Both are of the same requests, so chance has little part in a difference. Jitter is the
span of the lateness from its 5th to its 95th percentile, in mean gaps: clumps need not change the
CV of gaps that vary by themselves."""


class SentArrivals(msgspec.Struct, frozen=True, kw_only=True):
    """How requests came against how they were to, by figures of `_ALLOWED`; ``late`` in seconds.

    ``wrong``: the figures that lie too far off. ``between_steps``: requests went out between steps.
    """

    asked: dict[str, float]
    found: dict[str, float]
    wrong: list[str]
    late_median: float
    late_max: float
    between_steps: bool


class DeliveredArrivals(NamedTuple):
    """``sent`` is None where no requests came by themselves, or too few."""

    sent: SentArrivals | None
    metrics: Values


def check_delivered(schedule: Schedule, requests: RequestStamps) -> DeliveredArrivals:
    """Hold the requests' arrivals at the engine's door against the schedule's.

    Requests that wait for others, under a cap or for the turn before, come when these have
    ended: nothing is said of them.
    """
    nothing = DeliveredArrivals(None, {"arrival_gap_cv": None, "send_late_p99": None})
    sent = requests.sent_ns > 0
    if not comes_by_itself(schedule) or len(schedule.previous_turn) or sent.sum() < MIN_REQUESTS:
        return nothing
    due = schedule.arrival_seconds[sent]
    late = (requests.sent_ns - requests.scheduled_ns)[sent] / 1e9
    asked = _figures(due) | {"jitter": 0.0}
    found = _figures((requests.sent_ns[sent] - requests.scheduled_ns[0]) / 1e9)
    if "gaps' CV" not in asked:
        return nothing  # the run ended before a second moment came
    gaps = np.diff(due)
    found["jitter"] = float(np.diff(np.percentile(late, [5, 95]))[0] / gaps.mean())
    # It goes by rank, and among equal gaps the least jitter decides the ranks.
    if len(np.unique(gaps)) < 0.9 * len(gaps):
        asked.pop("lag-1 correlation", None)
    both = [name for name in asked if name in found]
    return DeliveredArrivals(
        SentArrivals(
            asked={name: asked[name] for name in both},
            found={name: found[name] for name in both},
            wrong=[
                name
                for name in both
                if abs(found[name] - asked[name]) > _allowed(name, asked[name])
            ],
            late_median=float(np.median(late)),
            late_max=float(late.max()),
            between_steps=bool((requests.sent_ns == requests.queued_ns)[sent].all()),
        ),
        {"arrival_gap_cv": found.get("gaps' CV"), "send_late_p99": percentile_or_none(late, 99)},
    )


def arrival_words(sent: SentArrivals | None) -> str:
    """ "as scheduled: …", "not as scheduled: …", or "" where nothing can be said."""
    if sent is None:
        return ""
    found = sent.found
    lateness = (
        f"{fmt.seconds(sent.late_median)} late at the median, {fmt.seconds(sent.late_max)} at most"
    )
    if not sent.wrong:
        figures = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
        return f"as scheduled: {figures}; {lateness}"
    wrong = ", ".join(
        f"{name} {found[name]:.2f} where {sent.asked[name]:.2f} was asked for"
        for name in sent.wrong
    )
    cause = "requests go out between steps" if sent.between_steps else "the machine was too busy"
    return f"not as scheduled: {wrong}; {lateness}: {cause}"


def _allowed(name: str, asked: float) -> float:
    amount, share = _ALLOWED[name]
    return max(amount, share * abs(asked))


def _figures(seconds: NDArray[np.float64]) -> dict[str, float]:
    """Those of `_ALLOWED` that these arrivals have."""
    check = check_arrivals(seconds)
    figures = {
        "gaps' CV": check.gap_cv,
        "lag-1 correlation": check.lag1_correlation,
        "dispersion": check.dispersion if check.num_windows >= MIN_WINDOWS else None,
    }
    return {name: value for name, value in figures.items() if value is not None}
