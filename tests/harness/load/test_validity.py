"""Each rule on data made to break it, and on data that just does not."""

import msgspec
import numpy as np
import pytest
from small import process, schedule

from engines.openai.capture import Recording
from engines.openai.outcome import NOT_ATTEMPTED, WHOLE, Outcome
from engines.openai.response import CountSource
from engines.openai.responses import Responses
from harness.load.measure import Wanted, measure
from harness.load.observed import Observed
from harness.load.task import Asked, ClientHealth
from harness.load.validity import (
    LEAST_LAG_SECONDS,
    LEAST_LATE_SECONDS,
    MAX_CPU_SHARE,
    MAX_LAG_GAPS,
    MAX_LATE_SECONDS,
    MAX_PAUSE_SECONDS,
    MAX_WAITED_SHARE,
    RULES,
)

MS = 1_000_000
GAP_SECONDS = 0.02
TOKEN_GAP_SECONDS = 0.03
LAG = max(LEAST_LAG_SECONDS, MAX_LAG_GAPS * TOKEN_GAP_SECONDS)
ANYTHING = Wanted()


def health(number=0, **changes):
    fields = {
        "process": number,
        "num_requests": 1,
        "seconds": 1.0,
        "cpu_share": 0.1,
        "waited_share": 0.01,
        "stolen_share": 0.0,
        "voluntary_switches": 0,
        "involuntary_switches": 0,
        "num_ticks": 1000,
        "lag_p90": 0.0,
        "lag_p95": 0.0,
        "lag_p99": 0.0001,
        "lag_p999": 0.0,
        "lag_max": 0.0,
        "num_pieces": 3,
        "num_bytes": 30,
        "collector": process(),
    }
    return ClientHealth(**(fields | changes))


def paused(seconds):
    collector = process((0, 0, 1))
    return health(1, collector=msgspec.structs.replace(collector, max_pause_seconds=seconds))


def observed(
    count=100, late_seconds=0.0, outcomes=(), clients=(), deaths=(), contradicted=(), **changes
):
    """Requests at a constant rate, two tokens each, sent so late; all completed but some.

    ``contradicted``: what usage says of the first ones, of which two token ids came.
    """
    made = schedule([2] * count, arrival_seconds=np.arange(count) * GAP_SECONDS)
    due = 10**9 + np.rint(made.arrival_seconds * 1e9).astype(np.int64)
    sent = due + np.broadcast_to(np.rint(np.multiply(late_seconds, 1e9)), count).astype(np.int64)
    outcome = np.full(count, Outcome.COMPLETED, np.int8)
    outcome[: len(outcomes)] = outcomes
    done = np.isin(outcome, WHOLE)
    numbers = np.full(count, 2, np.int64)
    usage, num_ids = numbers.copy(), numbers * 0
    usage[: len(contradicted)] = contradicted
    num_ids[: len(contradicted)] = 2
    return Observed(
        schedule=made,
        asked=Asked(urls=["http://h"], model="m"),
        start_ns=10**9,
        recording=Recording(
            sent,
            sent + 1,
            sent + 31 * MS,
            outcome,
            made.output_lens,
            np.zeros(0, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0, np.int64),
            np.zeros(0, np.uint8),
        ),
        responses=Responses(
            outcome,
            np.where(done, 1, -1).astype(np.int8),
            numbers,
            np.full(count, CountSource.USAGE, np.int8),
            usage,
            numbers,
            numbers,
            sent + MS,
            num_ids,
            numbers * 0,
            np.stack([sent + MS, sent + 31 * MS], 1).ravel(),
            np.zeros(int(num_ids.sum()), np.int32),
            np.zeros(0, np.uint8),
            {},
        ),
        clients=list(clients) or [health(0), health(1)],
        deaths=list(deaths),
        scrapes=[],
        **changes,
    )


def broken(seen, wanted=ANYTHING):
    result = measure(seen, "small", 0, wanted)
    assert result.is_valid == (not result.trial.invalid)
    for finding in result.broken:
        assert finding.sentence in result.trial.invalid
    return [finding.rule for finding in result.broken]


JUST_IN_TIME = min(MAX_LATE_SECONDS, max(LEAST_LATE_SECONDS, 0.5 * GAP_SECONDS))

HONEST = {
    "send lag": observed(late_seconds=0.99 * JUST_IN_TIME),
    "CPU": observed(clients=[health(cpu_share=0.99 * MAX_CPU_SHARE)]),
    "core": observed(clients=[health(waited_share=0.99 * MAX_WAITED_SHARE)]),
    "nobody tells": observed(clients=[health(waited_share=None)]),
    "loop lag": observed(clients=[health(lag_p90=0.99 * LAG, lag_p95=1.0, lag_p99=1.0)]),
    "few ticks": observed(clients=[health(num_ticks=129, lag_p95=1.0, lag_p99=1.0)]),
    "a moment": observed(clients=[health(seconds=0.4, cpu_share=1.0, lag_p99=1.0)]),
    "collector": observed(clients=[paused(0.99 * MAX_PAUSE_SECONDS)]),
    "a failure": observed(outcomes=[Outcome.RESET]),
    "a contradiction": observed(contradicted=[3, 2]),
    "a context's end": observed(outcomes=[Outcome.CONTEXT_FULL] * 100),
}
DISHONEST = {
    "completed": observed(outcomes=[Outcome.REFUSED] * 100),
    "failed": observed(outcomes=[Outcome.RATE_LIMITED, Outcome.CUT_OFF]),
    "interrupted": observed(is_interrupted=True),
    "client processes": observed(deaths=["client process 1 was killed by SIGKILL"]),
    "send lag": observed(late_seconds=1.01 * JUST_IN_TIME),
    "arrivals": observed(late_seconds=np.arange(100) % 2 * 0.9 * JUST_IN_TIME),
    "CPU": observed(clients=[health(0), health(1, cpu_share=1.01 * MAX_CPU_SHARE)]),
    "core": observed(clients=[health(0), health(1, waited_share=1.01 * MAX_WAITED_SHARE)]),
    "loop lag": observed(clients=[health(0), health(1, lag_p90=1.01 * LAG)]),
    "collector": observed(clients=[health(0), paused(1.01 * MAX_PAUSE_SECONDS)]),
    "token count": observed(contradicted=[3, 1]),
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_run_is_valid(name):
    assert broken(HONEST[name]) == []


@pytest.mark.parametrize("name", DISHONEST)
def test_each_rule_is_broken_alone(name):
    assert broken(DISHONEST[name]) == [name]


def test_a_percentile_needs_its_requests():
    assert broken(observed(661), Wanted(percentile=99)) == ["requests"]
    assert broken(observed(662), Wanted(percentile=99)) == []
    failed = observed(662, outcomes=[Outcome.RESET])
    assert broken(failed, Wanted(percentile=99)) == ["requests"]


def test_the_share_that_may_fail_is_a_choice():
    refused = observed(outcomes=[Outcome.REFUSED] * 90)
    (finding,) = measure(refused, "small", 0, ANYTHING).broken
    assert finding.sentence.startswith(
        "90 of 100 attempted requests failed (90.0 %, at most 1.0 %)"
    )
    assert broken(refused, Wanted(max_error_rate=0.9)) == []
    assert broken(refused, Wanted(max_error_rate=0.89)) == ["failed"]
    assert broken(observed(outcomes=[Outcome.REFUSED]), Wanted(max_error_rate=0)) == ["failed"]


@pytest.mark.parametrize("outcome", [each for each in Outcome if each not in WHOLE])
def test_whatever_is_not_completed_is_a_failure_or_was_not_attempted(outcome):
    result = measure(observed(outcomes=[outcome] * 50), "small", 0, ANYTHING)
    attempted = 50 if outcome in NOT_ATTEMPTED else 100
    assert (result.num_requests, result.num_attempted, result.num_completed) == (100, attempted, 50)
    assert ("failed" in [each.rule for each in result.broken]) == (attempted == 100)
    assert ["50 of 100 attempted requests failed" in each for each in result.notes] == (
        [True] * (attempted == 100)
    )


def test_a_run_can_be_too_short():
    seconds = 99 * GAP_SECONDS + 0.031
    assert broken(observed(), Wanted(min_duration=seconds + 0.001)) == ["duration"]
    assert broken(observed(), Wanted(min_duration=seconds - 0.001)) == []


def test_every_rule_is_tried_here():
    assert {rule.name for rule in RULES} == {*DISHONEST, "requests", "duration"}


@pytest.mark.parametrize(
    ("asked", "ticks", "figure"),
    [
        (50, 10_000, "lag_p90"),
        (94, 10_000, "lag_p90"),
        (95, 10_000, "lag_p95"),
        (99, 64, "lag_p90"),
        (99, 129, "lag_p90"),
        (99, 130, "lag_p95"),
        (99, 661, "lag_p95"),
        (99, 662, "lag_p99"),
        (99.9, 6635, "lag_p99"),
        (99.9, 6636, "lag_p999"),
    ],
)
def test_the_lag_is_judged_at_the_percentile_that_is_asked_for_and_can_be_told(
    asked, ticks, figure
):
    late = health(**({"lag_p99": 0.0, "num_ticks": ticks} | {figure: 1.01 * LAG}))
    seen = observed(6636, clients=[late])
    assert broken(seen, Wanted(percentile=asked)) == ["loop lag"]


def test_a_late_tail_is_said_where_it_is_not_judged():
    late = observed(6636, clients=[health(lag_p99=1.01 * LAG)])
    (note,) = measure(late, "small", 0, Wanted()).notes
    assert note.startswith("The client's own loop lagged ")
    assert "With --percentile 99 such a run is invalid." in note
    assert measure(late, "small", 0, Wanted(percentile=99)).notes == []
    assert measure(observed(clients=[health(lag_p99=0.99 * LAG)]), "small", 0, Wanted()).notes == []


def test_the_worst_process_is_named():
    seen = observed(clients=[health(0, cpu_share=0.85), health(1, cpu_share=0.95), health(2)])
    (finding,) = measure(seen, "small", 0, Wanted()).broken
    assert finding.sentence.startswith("client process 1 was at work 95")
