"""Whose pause a slow gap was, on made streams; and the rule on spans, against a plain loop."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from made_runs import CORE, MS, STEP, STREAMS, TOKENS, WORKER, collections, moment, run

from harness.load.attribution import CLIENT, LATE, REST, SERVER, SEVERAL, attribute
from harness.load.spans import Spans, spans_of
from harness.load.stops import ClientStops


def causes(observed, *pauses):
    found, slow = attribute(observed, collections(*pauses))
    assert len(slow.cause) == found.slow_gaps + found.slow_first_tokens
    return {(each.cause, each.process): each.gaps for each in found.causes}, found


def test_a_gap_is_the_pauses_that_made_it():
    observed = run({30: 50})
    by_cause, found = causes(observed, (CORE, moment(observed, 30) - 55 * MS, 50))
    assert by_cause == {(SERVER, "core"): STREAMS}
    assert found.slow_gaps == STREAMS
    assert found.causes[0].gap_share == 1.0
    assert found.causes[0].gap_seconds == pytest.approx(STREAMS * 0.05, rel=0.01)
    assert found.causes[0].pauses == 1
    (pause,) = found.pauses
    assert (pause.pid, pause.generation, pause.seconds, pause.gaps) == (CORE, 2, 0.05, STREAMS)


def test_a_short_pause_in_a_long_gap_is_not_its_cause():
    observed = run({30: 50})
    by_cause, _ = causes(observed, (CORE, moment(observed, 30) - 30 * MS, 5))
    assert by_cause == {(REST, ""): STREAMS}


def test_a_pause_that_still_lasts_when_the_token_comes_is_not_its_cause():
    observed = run({30: 50})
    by_cause, found = causes(observed, (CORE, moment(observed, 29) + 5 * MS, 75))
    assert by_cause == {(REST, ""): STREAMS}
    assert found.processes[0].felt == 0.0


def test_a_process_whose_pauses_mostly_stop_nobody_is_charged_with_nothing():
    observed = run({30: 50, 40: 50})
    aside = [(WORKER, moment(observed, token) - 50 * MS, 48) for token in (10, 15, 20, 25, 30)]
    by_cause, found = causes(observed, *aside, (CORE, moment(observed, 40) - 55 * MS, 50))
    assert by_cause == {(REST, ""): STREAMS, (SERVER, "core"): STREAMS}
    charged = {each.process: each.is_charged for each in found.processes}
    assert charged == {"core": True, "worker": False}


def test_two_processes_that_paused_one_after_the_other_share_it():
    observed = run({30: 50})
    at = moment(observed, 30)
    by_cause, _ = causes(observed, (CORE, at - 55 * MS, 25), (WORKER, at - 28 * MS, 25))
    assert by_cause == {(SEVERAL, ""): STREAMS}


def test_a_client_is_charged_for_its_own_requests_only():
    observed = run({30: 50, 40: 50}, clients=2)
    pause = (moment(observed, 30) - 51 * MS, moment(observed, 30) - MS)
    late = (moment(observed, 40) - 51 * MS, moment(observed, 40) + MS)
    stops = [ClientStops(0, [pause], [pause, late]), ClientStops(1)]
    by_cause, _ = causes(observed._replace(stops=stops))
    assert by_cause == {
        (CLIENT, "client 0"): STREAMS // 2,
        (LATE, "client 0"): STREAMS // 2,
        (REST, ""): STREAMS,
    }


def test_a_slow_first_token_has_a_cause_as_well():
    observed = run({})
    sent = observed.recording.sent_ns - 80 * MS * (np.arange(STREAMS) == 0)
    early = observed._replace(recording=observed.recording._replace(sent_ns=sent))
    found, _ = attribute(early, collections((CORE, 10**9 - 79 * MS, 80)))
    assert (found.slow_first_tokens, found.slow_gaps) == (1, 0)
    assert [(each.cause, each.first_tokens) for each in found.causes] == [(SERVER, 1)]


def test_a_run_without_slow_gaps_has_no_cause():
    by_cause, found = causes(run({}), (CORE, 10**9 + STEP, 5))
    assert by_cause == {}
    assert found.num_gaps == STREAMS * (TOKENS - 1)


def test_collections_without_a_moment_are_counted_over_the_run_only():
    readings = np.array([(10**8, 5), (10**9, 9), (2 * 10**9, 11), (10**11, 100)])
    found = collections()._replace(lost=readings)
    assert found.lost_between(10**9, 15 * 10**8) == 11 - 9


span = st.tuples(st.integers(0, 300), st.integers(0, 60)).map(lambda each: (each[0], sum(each)))
spans = st.lists(span, max_size=8)


@given(spans, spans, st.integers(0, 30))
@examples(50)
def test_spans_are_counted_as_a_plain_loop_counts_them(some, asked, slack):
    made = spans_of(*np.array(some, np.int64).reshape(-1, 2).T)
    begin, end = np.array(asked, np.int64).reshape(-1, 2).T
    covered = {unit for start, until in some for unit in range(start, until)}
    assert {unit for each in zip(*made, strict=True) for unit in range(*each)} == covered
    assert made.overlap(begin, end).tolist() == [len(covered & set(range(*each))) for each in asked]
    pairs = list(zip(made.start.tolist(), made.end.tolist(), strict=True))
    assert made.ended_within(begin, end, np.full(len(asked), slack)).tolist() == [
        sum(until - max(start, a - slack) for start, until in pairs if a < until <= b)
        for a, b in asked
    ]
    assert made.times_ended_in(begin, end).tolist() == [
        sum(a < until <= b for a, b in asked) for _, until in pairs
    ]
    rest = made.without(Spans(begin[:0], end[:0]))
    assert rest.length.tolist() == made.length.tolist()
