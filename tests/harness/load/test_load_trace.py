"""A run under load as a trace: pauses, requests, and slow gaps by the name of their cause."""

from made_runs import CORE, MS, STREAMS, collections, moment, run
from perfetto_reader import read_back

from harness.load.attribution import attribute
from harness.load.measure import requests_of
from harness.load.stops import ClientStops
from harness.report.load_trace import load_trace


def test_a_trace_has_pauses_requests_and_slow_gaps():
    observed = run({30: 50, 40: 80})
    late = (moment(observed, 40) - 81 * MS, moment(observed, 40) + MS)
    observed = observed._replace(stops=[ClientStops(0, [], [late])])
    pause = (CORE, moment(observed, 30) - 55 * MS, 50)
    before, across, after = (CORE, 5, 1), (CORE, 10**9 - MS, 3), (CORE, 10**11, 7)
    found = collections(before, across, pause, after)
    attribution, slow = attribute(observed, found)
    slices = read_back(load_trace(observed, requests_of(observed), found, attribution, slow))
    core = [each for each in slices if each.track == ("collections in core (7)", "generation 2")]
    assert [(each.start_ns, each.end_ns) for each in core] == [
        (10**9, 10**9 + 2 * MS),
        (pause[1], pause[1] + 50 * MS),
    ]
    (tick,) = [each for each in slices if each.track == ("client process 0", "loop late")]
    assert (tick.start_ns, tick.end_ns) == late
    inside = [each for each in slices if each.track == ("requests",) and each.depth == 2]
    assert [each.name for each in inside if each.end_ns < moment(observed, 35)] == [
        "collector of core (7)"
    ] * STREAMS
    assert [each.name for each in inside if each.end_ns > moment(observed, 35)] == [
        "client 0: its lag"
    ] * STREAMS
