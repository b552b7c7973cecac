"""The picture of a stall: whose it was, who waited, and nothing of what came much later."""

import pytest
from made_runs import CORE, MS, STREAMS, WORKER, collections, moment, run

from harness.load.attribution import attribute
from harness.load.stops import ClientStops
from harness.report.stall_image import stall_image


def texts(late_ms, *, late_streams=(), pauses=(), stops=()):
    """What stands in the picture; an SVG has each text as a comment."""
    observed = run(late_ms, late_streams=late_streams, stops=stops)
    found = collections(*pauses)
    attribution, slow = attribute(observed, found)
    svg = stall_image(observed, found, attribution, slow, ".svg").decode()
    assert svg == stall_image(observed, found, attribution, slow, ".svg").decode()
    return [line.strip()[5:-4] for line in svg.splitlines() if line.strip().startswith("<!-- ")]


def test_the_pause_for_which_streams_waited_longest_is_drawn():
    observed = run({30: 50, 50: 80})
    late = (moment(observed, 50) - 81 * MS, moment(observed, 50) + MS)
    there = texts(
        {30: 50, 50: 80},
        pauses=[(CORE, moment(observed, 30) - 55 * MS, 50), (WORKER, moment(observed, 50), 1)],
        stops=[ClientStops(0, [], [late])],
    )
    title = "A collection (generation 2) stopped core (7) for 50.0 ms, and 8 streams with it"
    assert title in there
    assert {"collections of", "core (7)", f"{STREAMS} of", "collector of core (7)"} <= set(there)
    # 400 ms later a token was late and another process collected.
    assert not {"worker (8)", "client 0: its lag"} & set(there)


def test_without_a_pause_the_longest_wait_is_drawn():
    there = texts({20: 30, 40: 60})
    assert "The longest wait for a token" in there
    assert "rest: no pause explains it" in there


def test_streams_that_wait_for_their_first_token_are_drawn():
    there = texts({}, late_streams=[2, 5], pauses=[(CORE, 3 * 10**9 + 15 * MS, 50)])
    title = "A collection (generation 2) stopped core (7) for 50.0 ms, and 2 streams with it"
    assert {title, "2 of", "collector of core (7)"} <= set(there)


def test_where_nothing_was_slow_there_is_nothing_to_draw():
    with pytest.raises(ValueError, match="nothing was slow"):
        texts({})
