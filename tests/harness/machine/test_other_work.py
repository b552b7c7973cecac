"""What others do on the machine: our own work and that of our trials is none of it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.machine.other_work import (
    Counters,
    OtherWork,
    Surroundings,
    read_counters,
    work_between,
)

SECONDS = st.floats(0, 1e5)


@given(SECONDS, st.floats(0.5, 1e4), st.integers(1, 64), st.data())
def test_others_are_what_is_at_work_less_ourselves(start, wall, cores, data):
    own = data.draw(st.floats(0, wall * cores))
    others = data.draw(st.floats(0, wall * cores - own))
    stolen = data.draw(st.floats(0, wall * cores - own - others))
    before = Counters(clock=start, busy=start, stolen=start, own=start)
    now = Counters(start + wall, start + own + others, start + stolen, start + own)
    found = work_between(before, now, cores)
    assert abs(found.others - others / wall) < 1e-6 * cores
    assert abs(found.stolen - stolen / wall / cores) < 1e-6
    assert found.is_busy == (found.others > 0.1 * cores or found.stolen > 0.01)


def test_counters_that_disagree_give_no_negative_work():
    before = Counters(clock=10.0, busy=5.0, stolen=1.0, own=4.0)
    found = work_between(before, Counters(11.0, 5.5, 0.9, 5.0), 2)
    assert (found.others, found.stolen, found.is_busy) == (0, 0, False)
    assert work_between(before, before, 2).others == 0


def test_our_own_work_is_counted_as_ours():
    before = read_counters()
    while (now := read_counters()).own < before.own + 0.2:
        sum(range(10_000))
    assert now.clock > before.clock
    # The kernel counts the machine's time in ticks, and our own more finely.
    assert now.busy - before.busy >= 0.1


@pytest.mark.parametrize(
    ("others", "stolen", "waited", "is_busy"),
    [
        (0.25, 0.01, 0.02, False),
        (math.nextafter(0.25, 1), 0.0, None, True),
        (0.0, math.nextafter(0.01, 1), None, True),
        (0.0, 0.0, math.nextafter(0.02, 1), True),
    ],
)
def test_a_machine_is_busy_beyond_each_share(others, stolen, waited, is_busy):
    """A tenth of two and a half cores' time, a hundredth stolen, a fiftieth waited."""
    work = OtherWork(seconds=60.0, cores=2.5, others=others, stolen=stolen)
    assert Surroundings(before=work, during=work, waited=waited).is_busy == is_busy
