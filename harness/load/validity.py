"""Whether a run's figures are the server's: one table of rules, each with its limit and whence.

A run that breaks a rule is invalid: its figures say something of the client or of chance.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.openai.responses import Responses
from harness import format as fmt
from harness.load.observed import Observed
from harness.load.task import ClientHealth
from harness.load.token_counts import num_contradicted
from harness.statistics.percentile import fewest_samples
from harness.trial.arrival_fidelity import SentArrivals, arrival_words
from harness.trial.recorder import RequestStamps


class Evidence(NamedTuple):
    """What rules look at. ``late``: seconds from each request's moment to its sending, of those
    that come by themselves, ``mean_gap`` between their moments; ``median_gap``: between
    moments at which tokens came; ``delivered``: None where no requests came by themselves.
    """

    observed: Observed
    requests: RequestStamps
    late: NDArray[np.float64]
    mean_gap: float
    median_gap: float
    delivered: SentArrivals | None
    seconds: float
    percentile: float
    min_duration: float
    max_error_rate: float

    @property
    def responses(self) -> Responses:
        """What requests were answered."""
        return self.observed.responses

    @property
    def clients(self) -> list[ClientHealth]:
        """How the processes fared."""
        return self.observed.clients


class Rule(NamedTuple):
    """``broken``: how the evidence breaks it, in a sentence, or ""."""

    name: str
    limit: str
    source: str
    broken: Callable[[Evidence], str]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that was broken."""

    rule: str
    limit: str
    sentence: str


LEAST_SECONDS = 0.5
"""Of a client process that measured for less, no share and no percentile means anything."""
MAX_LATE_SECONDS = 0.010
MAX_LATE_GAPS = 0.5
LEAST_LATE_SECONDS = 0.002
MAX_CPU_SHARE = 0.8
MAX_WAITED_SHARE = 0.1
MAX_LAG_SECONDS = 0.010
MAX_LAG_GAPS = 0.1
LEAST_LAG_SECONDS = 0.001
MAX_PAUSE_SECONDS = 0.001


def _late(seen: Evidence) -> str:
    if not len(seen.late):
        return ""
    limit = min(MAX_LATE_SECONDS, max(LEAST_LATE_SECONDS, MAX_LATE_GAPS * seen.mean_gap))
    found = float(np.percentile(seen.late, 99))
    if found <= limit:
        return ""
    return (
        f"requests were sent late: p99 {fmt.seconds(found)} after their moment, at most "
        f"{fmt.seconds(limit)} at a mean gap of {fmt.seconds(seen.mean_gap)}; use more "
        "--client-processes or a lower rate"
    )


def _over(
    seen: Evidence,
    figure: Callable[[ClientHealth], float | None],
    limit: float,
    sentence: Callable[[float], str],
) -> str:
    """Of the processes over a limit the worst, in a sentence that begins with its number."""
    values = {
        client.process: figure(client) for client in seen.clients if client.seconds >= LEAST_SECONDS
    }
    over = {process: value for process, value in values.items() if value and value > limit}
    if not over:
        return ""
    worst = max(over, key=over.__getitem__)
    return f"client process {worst} {sentence(over[worst])}"


def _cpu(seen: Evidence) -> str:
    return _over(
        seen,
        lambda client: client.cpu_share,
        MAX_CPU_SHARE,
        lambda found: (
            f"was at work {fmt.percent(found)} of the time, at most "
            f"{fmt.percent(MAX_CPU_SHARE)}; use more --client-processes"
        ),
    )


def _waited(seen: Evidence) -> str:
    return _over(
        seen,
        lambda client: client.waited_share,
        MAX_WAITED_SHARE,
        lambda found: (
            f"waited {fmt.percent(found)} of the time for a core that another program "
            f"had, at most {fmt.percent(MAX_WAITED_SHARE)}; give it a core of its own"
        ),
    )


def _judged_lag(client: ClientHealth, percentile: float) -> float | None:
    """At the percentile that is asked for, but the 90th at least, where there are enough ticks.

    One late stamp in a hundred changes no mean and no median.
    """
    lags = (
        (99.9, client.lag_p999),
        (99, client.lag_p99),
        (95, client.lag_p95),
        (90, client.lag_p90),
    )
    for q, lag in lags:
        if q <= max(90, percentile) and client.num_ticks >= fewest_samples(q):
            return lag
    return None


def lag_limit(median_gap: float) -> float:
    """What the loop of a client process may lag, in seconds, where tokens come so often."""
    return min(MAX_LAG_SECONDS, max(LEAST_LAG_SECONDS, MAX_LAG_GAPS * median_gap))


def _lag(seen: Evidence) -> str:
    limit = lag_limit(seen.median_gap)
    return _over(
        seen,
        lambda client: _judged_lag(client, seen.percentile),
        limit,
        lambda found: (
            f"stamped late: its loop's lag was {fmt.seconds(found)}, at most "
            f"{fmt.seconds(limit)} where tokens come every {fmt.seconds(seen.median_gap)}; use "
            "more --client-processes or a quieter machine"
        ),
    )


def _pause(seen: Evidence) -> str:
    return _over(
        seen,
        lambda client: client.collector.max_pause_seconds,
        MAX_PAUSE_SECONDS,
        lambda found: (
            f"stood still for {fmt.seconds(found)} in its own garbage collector, at "
            f"most {fmt.seconds(MAX_PAUSE_SECONDS)}; leave --client-gc at its default"
        ),
    )


def _arrivals(seen: Evidence) -> str:
    sent = seen.delivered
    return f"requests came {arrival_words(sent)}" if sent and sent.wrong else ""


def _died(seen: Evidence) -> str:
    return "; ".join(seen.observed.deaths)


def _count(seen: Evidence) -> str:
    wrong, completed = num_contradicted(seen.responses), int(seen.responses.completed.sum())
    if wrong <= seen.max_error_rate * completed:
        return ""
    return (
        f"{wrong:,} of {completed:,} answers brought another number of token ids than their usage "
        f"says ({fmt.percent(wrong / completed)}, at most {fmt.percent(seen.max_error_rate)}), so "
        "that no figure of tokens has a basis; mend the server, or allow it with --max-error-rate"
    )


def _nothing(seen: Evidence) -> str:
    return "" if seen.responses.completed.any() else "no request was answered to its end"


def _failed(seen: Evidence) -> str:
    """The others were answered by a server with less to do, or are those that it likes."""
    attempted, completed = (
        int(each.sum()) for each in (seen.responses.attempted, seen.responses.completed)
    )
    failed = attempted - completed
    if not completed or failed <= seen.max_error_rate * attempted:
        return ""
    return (
        f"{failed:,} of {attempted:,} attempted requests failed ({fmt.percent(failed / attempted)},"
        f" at most {fmt.percent(seen.max_error_rate)}), so that figures are of the rest alone; ask "
        "for less at a time, or allow it with --max-error-rate"
    )


def _few(seen: Evidence) -> str:
    wanted = fewest_samples(seen.percentile)
    completed = int(seen.responses.completed.sum())
    if completed >= wanted or not completed:
        return ""
    return (
        f"too few requests: {completed:,} of {seen.responses.attempted.sum():,} attempted were "
        f"completed, a {seen.percentile:g}th percentile needs "
        f"{wanted:,}; ask for more with --num-requests"
    )


def _short(seen: Evidence) -> str:
    if seen.seconds >= seen.min_duration:
        return ""
    return (
        f"too short: {fmt.seconds(seen.seconds)} from the first request to the last token, "
        f"--min-duration asks for {fmt.seconds(seen.min_duration)}"
    )


def _interrupted(seen: Evidence) -> str:
    return "interrupted before all requests were sent" if seen.observed.is_interrupted else ""


_HEALTH = "the client's own health; docs/load.md says how the limit was chosen"
_LOADGEN = "MLPerf LoadGen, results.cc"

RULES = (
    Rule("completed", "one request at least", _LOADGEN, _nothing),
    Rule("failed", "--max-error-rate of those attempted", "docs/load.md", _failed),
    Rule("interrupted", "the whole schedule", _LOADGEN, _interrupted),
    Rule("client processes", "all to the end", _HEALTH, _died),
    Rule(
        "send lag",
        f"p99 {MAX_LATE_SECONDS:g} s, {MAX_LATE_GAPS:g} mean gaps (but {LEAST_LATE_SECONDS:g} s)",
        _HEALTH,
        _late,
    ),
    Rule("arrivals", "as `arrival_fidelity` allows", "docs/method.md", _arrivals),
    Rule("CPU", f"{MAX_CPU_SHARE:g} of a core", _HEALTH, _cpu),
    Rule("core", f"waited for {MAX_WAITED_SHARE:g} of the time", _HEALTH, _waited),
    Rule(
        "loop lag",
        f"at --percentile, but p90 at least: {MAX_LAG_GAPS:g} of the median gap "
        f"between tokens (but {LEAST_LAG_SECONDS:g} s), {MAX_LAG_SECONDS:g} s",
        _HEALTH,
        _lag,
    ),
    Rule("collector", f"pause of {MAX_PAUSE_SECONDS:g} s", _HEALTH, _pause),
    Rule("token count", "ids as usage says, but for --max-error-rate", _LOADGEN, _count),
    Rule("requests", "enough for --percentile", _LOADGEN, _few),
    Rule("duration", "--min-duration", _LOADGEN, _short),
)


def findings(seen: Evidence) -> list[Finding]:
    """The rules that a run breaks, in the table's order."""
    return [
        Finding(rule=rule.name, limit=rule.limit, sentence=sentence)
        for rule in RULES
        if (sentence := rule.broken(seen))
    ]
