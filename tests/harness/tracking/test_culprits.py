"""Which commit an alert names: its range holds the right one, and is as narrow as can be."""

from itertools import product

import numpy as np
import pytest
from examples import every, some

from harness.tracking.detect.change import Change, Rerun
from harness.tracking.detect.examine import examine
from harness.tracking.detect.series import Series
from harness.tracking.detect.simulate import Noise, rerun_of, simulated_history

SLOW = Noise(0.03, 0.05)
DAY_11 = [1.004, 0.985, 1.013, 0.981, 1.035, 1.031, 1.005, 1.005, 1.027, 0.990, 0.986, 1.040, 1.072]
"""3 % noise, and 10 % more from day 11 on, which noise makes look like day 12."""


def rerun(before: str, after: str, ratio: float, newest: str = "") -> Rerun:
    return Rerun(before, after, ratio, (ratio * 0.97, ratio * 1.03), newest)


def alerts(values, *reruns: Rerun) -> list[Change]:
    of = Series.of([float(value) for value in values])
    return [change for change in examine(of, reruns).changes if change.is_alert]


def test_ten_percent_at_day_11_is_not_said_to_be_of_day_12_alone():
    (change,) = alerts(DAY_11, rerun("10", "12", 1.118))
    assert change.found == 12
    assert "11" in change.plausible
    assert change.last_before == "10"
    assert change.next_pair in [("10", "11"), ("11", "12")]


@pytest.mark.parametrize(("ratio", "right"), [(1.1, "11"), (1.0, "12")])
def test_a_second_re_run_says_which_of_two_it_was(ratio, right):
    first = rerun("10", "12", 1.118)
    (before,) = alerts(DAY_11, first)
    assert before.next_pair in [("10", "11"), ("11", "12")]
    (after,) = alerts(DAY_11, first, rerun("10", "11", ratio, newest="12"))
    assert after.plausible == (right,)
    assert (after.first_after, after.last_before) == (right, str(int(right) - 1))
    assert after.next_pair is None


def test_what_is_measured_later_moves_the_range_and_not_the_alert():
    first, second = rerun("10", "12", 1.118), rerun("10", "11", 1.1, newest="15")
    nights = [*DAY_11, 1.104, 1.095, 1.11]
    (before,) = alerts(nights[:13], first)
    (after,) = alerts(nights, first, second)
    assert after.found == before.found == 12
    assert after.named == before.plausible
    assert after.plausible == ("11",)
    assert (after.ratio, after.ci95) == (before.ratio, before.ci95)


def test_nights_that_follow_say_better_where_a_step_lies():
    rng = np.random.default_rng(6)
    made = simulated_history(rng, Noise(0.02), 40, 20, 0.12)
    whole = alerts(made.values)[0]
    early = alerts(made.values[: whole.found + 1])[0]
    assert whole.named == early.plausible
    assert len(whole.plausible) <= len(early.plausible)
    assert "20" in whole.plausible


def test_a_re_run_across_one_step_is_no_evidence_for_another():
    values = np.exp(0.01 * np.random.default_rng(9).standard_normal(30))
    values[20:] *= 1.04
    found = alerts(
        values, rerun("19", "26", 1.04), rerun("18", "25", 1.04), rerun("17", "24", 1.04)
    )
    assert len(found) == 1


def measured(with_rerun: bool, width: float, count: int, nights: int = 20) -> np.ndarray:
    """Of the first alert of each history: whether its range is right, and how wide it is."""
    rows = []
    for seed in range(count):
        rng = np.random.default_rng([seed, int(width)])
        place = int(rng.integers(12, nights - 3))
        made = simulated_history(rng, SLOW, nights, place, float(np.expm1(width * SLOW.sd)))
        ask = rerun_of(made, rng, SLOW.sd / 2) if with_rerun else None
        found = examine(Series.of(made.values.tolist()), ask=ask).changes
        own = [change for change in found if change.is_alert and change.found >= place]
        rows += [(str(place) in change.named, len(change.named)) for change in own[:1]]
    return np.array(rows)


@pytest.mark.slow
@pytest.mark.landing
def test_an_alert_through_a_re_run_holds_the_right_commit_among_two():
    right, width = measured(True, 3, 200).T
    assert len(right) >= 190
    assert right.mean() >= 0.99
    assert (width <= 2).mean() >= 0.97


@pytest.mark.slow
def test_the_range_is_honest_at_each_size():
    for width, with_rerun in some(list(product((2, 3, 5, 10), (True, False)))):
        right, _ = measured(with_rerun, width, 600 // every(), nights=30).T
        assert right.mean() >= (0.98 if width > 2 else 0.96), (width, with_rerun)
