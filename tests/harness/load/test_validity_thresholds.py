"""Each limit of a run under load just met, and just not."""

import math
from dataclasses import replace

import numpy as np
import pytest
from test_validity import MS, broken, health, observed, paused

from harness.load.measure import Wanted
from harness.load.validity import lag_limit

LATER = math.nextafter


def late(mean_gap: float, late_ns: int):
    """Requests so far apart that all go out so many nanoseconds late."""
    seen = observed()
    seconds = np.arange(len(seen.recording.sent_ns)) * mean_gap
    sent = 10**9 + np.rint(seconds * 1e9).astype(np.int64) + late_ns
    return seen._replace(
        schedule=replace(seen.schedule, arrival_seconds=seconds),
        recording=seen.recording._replace(sent_ns=sent),
        responses=seen.responses._replace(
            delivered_ns=np.stack([sent + MS, sent + 31 * MS], 1).ravel()
        ),
    )


@pytest.mark.parametrize(
    ("mean_gap", "limit_ns"),
    [
        (2**-9, 2_000_000),  # of 2 ms at least, however fast they come
        (2**-7, 3_906_250),  # half a gap
        (2**-3, 10_000_000),  # of 10 ms at most
    ],
)
def test_requests_are_late_beyond_the_limit(mean_gap, limit_ns):
    assert broken(late(mean_gap, limit_ns)) == []
    assert broken(late(mean_gap, limit_ns + 1)) == ["send lag"]


@pytest.mark.parametrize(
    ("median_gap", "limit"), [(0.005, 0.001), (0.03125, 0.003125), (0.25, 0.01)]
)
def test_a_loop_may_lag_a_tenth_of_a_gap_between_one_and_ten_milliseconds(median_gap, limit):
    assert lag_limit(median_gap) == pytest.approx(limit, rel=1e-12)


GAP = 0.03
"""Between the tokens of these runs."""


@pytest.mark.parametrize(
    ("client", "rules"),
    [
        (health(cpu_share=0.8), []),
        (health(cpu_share=LATER(0.8, 1)), ["CPU"]),
        (health(waited_share=0.1), []),
        (health(waited_share=LATER(0.1, 1)), ["core"]),
        (health(lag_p90=lag_limit(GAP)), []),
        (health(lag_p90=LATER(lag_limit(GAP), 1)), ["loop lag"]),
        (paused(0.001), []),
        (paused(LATER(0.001, 1)), ["collector"]),
        # Of a process that measured for less than half a second nothing is judged.
        (health(seconds=LATER(0.5, 0), cpu_share=1.0), []),
        (health(seconds=0.5, cpu_share=1.0), ["CPU"]),
    ],
)
def test_a_client_process_is_judged_beyond_each_limit(client, rules):
    assert broken(observed(clients=[client])) == rules


def test_a_run_lasts_as_long_as_was_asked_for_or_is_too_short():
    seen = observed()
    seconds = float(seen.responses.delivered_ns.max() - seen.recording.sent_ns.min()) / 1e9
    assert broken(seen, Wanted(min_duration=seconds)) == []
    assert broken(seen, Wanted(min_duration=LATER(seconds, 9))) == ["duration"]
