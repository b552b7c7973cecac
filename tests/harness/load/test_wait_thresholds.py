"""Which waits are slow and whose pause is their cause: each threshold just met, and just not."""

import numpy as np
import pytest
from made_runs import CORE, MS, STEP, TOKENS, WORKER, collections, moment, run

from harness.load.attribution import REST, SERVER, attribute
from harness.load.waits import waits_of

NS = 1.5e-6
"""A nanosecond more, in milliseconds, whichever way it is rounded."""


def streams(lengths_ns):
    """A run of these gaps ``[streams, tokens]``, the first of each being its first token's."""
    lengths = np.asarray(lengths_ns, np.int64)
    count, tokens = lengths.shape
    seen = run({})
    sent = np.full(count, 10**9)
    counts = np.full(count, tokens)
    outcome = np.full(count, seen.responses.outcome[0], np.int8)
    moments = sent[:, None] + lengths.cumsum(axis=1)
    return seen._replace(
        recording=seen.recording._replace(sent_ns=sent),
        responses=seen.responses._replace(
            outcome=outcome, num_deliveries=counts, delivered_ns=moments.ravel()
        ),
    )


def slow_gaps(observed) -> int:
    return attribute(observed, collections())[0].slow_gaps


def cause(observed, *pauses) -> set[str]:
    return {each.cause for each in attribute(observed, collections(*pauses))[0].causes}


def test_a_gap_is_slow_by_more_than_a_millisecond():
    assert slow_gaps(run({30: 1.0})) == 0
    assert slow_gaps(run({30: 1.0 + NS})) == 8


def test_a_gap_is_slow_by_more_than_five_deviations():
    scattered = [token for token in range(1, TOKENS) if token not in (10, 20, 30)]
    scatter = {token: (-2, 2)[place % 2] for place, token in enumerate(scattered)}
    assert slow_gaps(run(scatter | {30: 10.0})) == 0
    assert slow_gaps(run(scatter | {30: 10.0 + NS})) == 8


@pytest.mark.parametrize(("gaps", "usual"), [(20, 5 * STEP), (19, STEP)])
def test_a_stream_of_twenty_gaps_is_judged_by_its_own(gaps, usual):
    """A slower one beside a stream of many gaps."""
    seen = run({})
    lengths = [np.full(TOKENS, STEP), np.full(gaps + 1, 5 * STEP)]
    counts = np.array([len(each) for each in lengths])
    moments = np.concatenate([10**9 + each.cumsum() for each in lengths])
    seen = seen._replace(
        recording=seen.recording._replace(sent_ns=np.full(2, 10**9)),
        responses=seen.responses._replace(
            outcome=seen.responses.outcome[:2], num_deliveries=counts, delivered_ns=moments
        ),
    )
    waits = waits_of(seen)
    found = waits.usual_ns[(waits.request == 1) & ~waits.is_first]
    assert set(found.tolist()) == {usual}


def test_a_pause_of_four_fifths_of_what_a_wait_was_longer_is_its_cause():
    observed = run({30: 50})
    end = moment(observed, 30) - MS
    assert cause(observed, (CORE, end - 40 * MS, 40)) == {SERVER}
    assert cause(observed, (CORE, end - 40 * MS, 40 - NS)) == {REST}


def test_a_process_is_charged_of_whose_long_pauses_half_are_felt():
    observed = run({30: 50})
    felt = (WORKER, moment(observed, 30) - 50 * MS, 48)
    begin = moment(observed, 10) - 50 * MS
    assert cause(observed, felt, (WORKER, begin, 48)) == {SERVER}
    assert cause(observed, felt, (WORKER, begin, 48 + NS)) == {REST}


@pytest.mark.parametrize(("stopped", "is_felt"), [(2, False), (3, True)])
def test_a_pause_is_felt_by_more_than_two_streams_of_a_hundred(stopped, is_felt):
    lengths = np.full((100, 60), STEP)
    lengths[:stopped, 30] += 50 * MS
    observed = streams(lengths)
    end = 10**9 + 30 * STEP + 65 * MS
    found, _ = attribute(observed, collections((CORE, end - 50 * MS, 50)))
    assert [each.felt for each in found.processes] == [1.0 if is_felt else 0.0]


@pytest.mark.parametrize("count", [49, 50, 51])
def test_fifty_pauses_are_named(count):
    lengths = np.full((2, 4 * count), STEP)
    lengths[:, 2::4] += 50 * MS
    observed = streams(lengths)
    ends = observed.responses.delivered_ns[: 4 * count][2::4] - MS
    pauses = [(CORE, int(end) - 50 * MS, 50) for end in ends]
    found, _ = attribute(observed, collections(*pauses))
    assert len(found.pauses) == min(count, 50)
