"""How often the detector is wrong and how soon it is right, in seeded simulation."""

import math
from itertools import product

import numpy as np
import pytest
from examples import some

from harness.report.self_test import self_test_table
from harness.tracking.detect.change import Rerun
from harness.tracking.detect.examine import examine
from harness.tracking.detect.self_test import WITHIN, self_test
from harness.tracking.detect.series import Series
from harness.tracking.detect.simulate import Noise, planted, rerun_of, simulated_history

SLOW = Noise(0.03, 0.05)


def delays(noise: Noise, step: float, count: int, with_rerun: bool) -> list[float]:
    """Nights from a step at night 30 to its alert; 0 for an alert where there is no step."""
    found = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        made = simulated_history(rng, noise, 60 if step == 0 else 45, 30, step)
        ask = rerun_of(made, rng, 0.015) if with_rerun else None
        nights = [
            c.found for c in examine(Series.of(made.values.tolist()), ask=ask).changes if c.is_alert
        ]
        first = min((n for n in nights if step == 0 or n >= 30), default=float("inf"))
        found.append(first if step == 0 else first - 29)
    return found


def share(found: list[float], within: float) -> float:
    return sum(nights <= within for nights in found) / len(found)


@pytest.mark.slow
def test_a_history_without_a_change_gives_an_alert_at_most_twice_in_a_hundred():
    for noise, with_rerun in some(
        [*product((Noise(0.03), SLOW, Noise(0.01, 0.05)), (False, True))]
    ):
        assert share(delays(noise, 0.0, 400, with_rerun), 60) <= 0.02, (noise, with_rerun)


def test_few_false_alerts_among_few_histories():
    assert share(delays(SLOW, 0.0, 50, False), 60) <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("noise", [Noise(0.03), SLOW])
def test_eight_percent_is_found_in_time_with_a_rerun(noise):
    found = delays(noise, 0.08, 200, True)
    assert share(found, 3) >= 0.8
    assert share(found, 5) >= 0.95


@pytest.mark.slow
def test_eight_percent_is_found_by_the_nights_alone_somewhat_later():
    assert share(delays(SLOW, 0.08, 200, False), 10) >= 0.85


def test_a_small_noise_needs_no_rerun():
    assert share(delays(Noise(0.01, 0.05), 0.08, 40, False), 4) >= 0.95


def test_a_rerun_answers_with_the_truth():
    made = planted(np.zeros(10), 5, 0.08)
    ask = rerun_of(made, np.random.default_rng(0), 1e-6)
    across, beside = ask("4", "5"), ask("5", "9")
    assert isinstance(across, Rerun)
    assert isinstance(beside, Rerun)
    assert across.ratio == pytest.approx(1.08, rel=1e-4)
    assert beside.ratio == pytest.approx(1, rel=1e-4)


@pytest.mark.slow
def test_the_self_test_knows_a_quiet_series_from_a_noisy_one():
    rng = np.random.default_rng(0)
    quiet, loud = (
        Series.of(simulated_history(rng, Noise(sd), 40, 40, 0).values.tolist(), name=f"{sd}")
        for sd in (0.01, 0.06)
    )
    one, other = self_test([quiet, loud], repetitions=10)
    assert (one.series, one.points) == ("0.01", 40)
    assert one.noise == pytest.approx(0.01, rel=0.4)
    assert other.noise == pytest.approx(0.06, rel=0.4)
    assert one.found is not None
    assert other.found is not None
    assert one.found[0.08][1] >= 0.9
    assert other.found[0.08][1] <= 0.5
    assert one.false_alerts == 0
    for row in (one, other):
        assert row.found is not None
        assert row.nights is not None
        for step, shares in row.found.items():
            # Half of them within so many nights is what the time to detection says, and no more.
            nights = row.nights[step] or math.inf
            within = dict(zip(WITHIN, shares, strict=True))
            assert all((share >= 0.5) == (nights <= n) for n, share in within.items())
    assert self_test([quiet, loud], repetitions=10) == [one, other]


def test_the_self_test_takes_levels_off():
    rng = np.random.default_rng(0)
    values = simulated_history(rng, Noise(0.01), 60, 30, 0.5).values.tolist()
    (row,) = self_test([Series.of(values)], repetitions=5)
    assert row.found is not None
    assert row.found[0.08][1] >= 0.8


@pytest.mark.parametrize(("points", "is_short"), [(13, True), (29, True), (30, False)])
def test_the_self_test_cautions_where_the_history_is_short(points, is_short):
    """A night's accident among 13 comes back once in 13 nights of each simulated history."""
    noise = 0.01 * np.random.default_rng(3).standard_normal(points)
    (row,) = self_test([Series.of(np.exp(noise).tolist(), name="itl")], repetitions=4)
    assert row.found is not None
    assert row.repetitions == 4
    table = self_test_table([row])
    (cells,) = table.groups[0]
    shown = f"{row.false_alerts:.0%}".replace("%", " %")
    assert cells[3].startswith(shown.split()[0])
    assert cells[3].endswith("*") == is_short
    assert ("fewer than 30 points" in table.caption) == is_short
    assert "4 simulated histories" in table.caption


def test_the_self_test_says_why_it_says_nothing():
    exact = Series.of([1.0] * 20)
    rows = self_test(
        [Series(exact.points, kind="exact"), Series.of([1.0, 2.0]), Series.of([0.0, 1.0] * 10)]
    )
    assert [row.why for row in rows] == [
        "exact: each change is seen at its first commit",
        "too few points",
        "values that are not above 0",
    ]
    assert {row.false_alerts for row in rows} == {None}
