"""What the detector calls certain, suspected or the machine's doing: each threshold on both sides.

Steps are given as the nights would have shown them, so that a likelihood is just what it is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pytest

from harness.metrics import differs
from harness.tracking.detect.change import Rerun
from harness.tracking.detect.evidence import Line, StepEvidence, Steps
from harness.tracking.detect.examine import examine
from harness.tracking.detect.locate import PairRerun, Range, locate
from harness.tracking.detect.search import search
from harness.tracking.detect.series import Point, PointColumns, Series
from harness.tracking.detect.timing import evidence_of
from harness.tracking.detect.weigh import OF_ONE, WeighedStep, settled, weigh
from harness.tracking.triage import NOTHING_SAID, load_triage
from harness.tracking.verdict import judge

NIGHT = 40


@dataclass
class Shown:
    """Evidence of (night, first night after, gain), each a rise by a tenth."""

    seen: Sequence[tuple[int, int, float]]
    line_gain: float = 0.0
    nights: int = NIGHT + 1

    @property
    def values(self) -> np.ndarray:
        return np.zeros(self.nights)

    def steps(self, starts: tuple[int, ...], least_nights: int) -> Steps:
        night, first, gain = map(np.array, zip(*self.seen, strict=True))
        zeros, tenth = np.zeros(len(gain)), np.full(len(gain), 0.1)
        return Steps(night, first, gain, zeros, zeros, tenth, tenth / 10, np.full(len(gain), 20))

    def steps_of(self, starts: tuple[int, ...], least_nights: int, night: int) -> Steps:
        seen = self.steps(starts, least_nights)
        return Steps._make(each[seen.night == night] for each in seen)

    def certain_nights(
        self, starts: tuple[int, ...], least_nights: int, gain: float, by_own_past: bool
    ) -> set[int]:
        return {night for night, _, gained in self.seen if gained >= gain}

    def line(self, starts: tuple[int, ...], night: int) -> Line:
        return Line(self.line_gain, 0.1, night)


def certainty(gain: float, lasted: int = 3, reruns: Sequence[PairRerun] = ()) -> str:
    shown = Shown([(NIGHT, NIGHT - lasted + 1, gain)])
    found = weigh(shown, (0,), NIGHT, reruns, lambda level, rise: True, OF_ONE)
    return found.certainty if found else ""


@pytest.mark.parametrize(
    ("gain", "lasted", "said"),
    [
        (7.8, 3, "found"),
        (7.79, 3, "suspected"),
        (7.8, 2, "suspected"),
        (2.5, 1, "suspected"),
        (2.49, 3, ""),
    ],
)
def test_a_step_is_certain_or_suspected_from_a_gain_on(gain, lasted, said):
    assert certainty(gain, lasted) == said


@pytest.mark.parametrize(
    ("gain", "left", "said"),
    [(7.8, 2.49, "machine"), (7.79, 2.49, ""), (7.8, 2.51, "suspected"), (9.0, 7.5, "suspected")],
)
def test_a_rerun_refutes_what_was_certain_and_is_no_suspicion_any_more(gain, left, said):
    """One of no rise, so exact that it leaves ``left`` of the gain: 50 less what both are worth."""
    own, lost = 1 / 0.01**2, gain - left
    share = lost / (own * 0.1**2 / 2)
    error = math.sqrt((1 - share) / share / own)
    assert certainty(gain, 3, [PairRerun(NIGHT - 5, NIGHT, 0.0, error, NIGHT)]) == said


@pytest.mark.parametrize(("line_gain", "is_step"), [(5.0, True), (5.01, False)])
def test_a_step_is_likelier_by_three_than_a_drift_or_is_none(line_gain, is_step):
    walk = search(Shown([(NIGHT, NIGHT - 2, 8.0)], line_gain), lambda level, rise: True)
    assert (len(walk.steps), walk.drifts) == ((1, []) if is_step else (0, [NIGHT]))


def of_two_levels(last: float, reruns: Sequence[Rerun] = ()) -> list[tuple[str, int]]:
    """What is said of a series that was at 0, at 0.3, at 0 and is at ``last``, in logarithms."""
    levels = np.repeat([0.0, 0.3, 0.0, last], [14, 10, 10, 6])
    values = np.exp(levels + 1e-3 * np.random.default_rng(3).standard_normal(len(levels)))
    return [(each.certainty, each.place) for each in examine(Series.of(values), reruns).changes]


@pytest.mark.parametrize(("last", "said"), [(0.395, "suspected"), (0.41, "found")])
def test_a_series_that_is_at_one_of_two_levels_by_chance_blames_nobody(last, said):
    assert of_two_levels(last) == [("found", 14), ("found", 24), (said, 34)]


def test_what_it_does_at_two_levels_is_a_commits_when_a_rerun_has_it_too():
    again = Rerun("33", "39", math.exp(0.3), (math.exp(0.29), math.exp(0.31)), "39")
    assert of_two_levels(0.3, [again])[-1] == ("confirmed", 34)


def test_four_reruns_are_asked_for_in_a_night():
    asked = []

    def ask(before: int, after: int, night: int) -> PairRerun:
        asked.append(night)
        return PairRerun(before, after, 0.1, 10.0, night)

    wide = [(NIGHT, first, 8.0) for first in range(NIGHT - 12, NIGHT - 2)]
    search(Shown(wide), lambda level, rise: True, ask=ask)
    assert asked == [NIGHT] * 4


def test_reruns_narrow_a_step_for_seven_nights():
    """Its own and the six after it, of which each asks for four until all pairs are known."""
    asked = []

    def ask(before: int, after: int, night: int) -> PairRerun:
        asked.append(night)
        return PairRerun(before, after, 0.1, 10.0, night)

    wide = [(20, first, 8.0) for first in range(8, 18)]
    search(Shown(wide), lambda level, rise: True, ask=ask)
    assert sorted(set(asked)) == list(range(20, 27))


@pytest.mark.parametrize(("later", "word"), [(6, "worse"), (7, "worse"), (8, "no_change_shown")])
def test_a_change_is_news_for_seven_points(later, word):
    series = Series(
        tuple(Point(str(n), 100.0 + 30 * (n > 0)) for n in range(later + 1)), "s", kind="exact"
    )
    assert judge(series, examine(series), NOTHING_SAID, date(2026, 1, 30)).word == word


@pytest.mark.parametrize(("points", "is_enough"), [(7, False), (8, True)])
def test_a_timing_needs_eight_points(points, is_enough):
    assert examine(Series.of([1.0] * points)).is_enough == is_enough


def test_a_step_lies_behind_three_nights_and_in_the_latest_fourteen():
    evidence = StepEvidence(np.zeros(60), np.ones(60), 1e-4)
    seen = evidence.steps((0,), 8)
    assert (int(seen.night.min()), int(seen.first.min())) == (7, 3)
    last = seen.first[seen.night == 59]
    assert last.tolist() == list(range(46, 60))


def test_forty_four_nights_are_looked_at():
    evidence = StepEvidence(np.arange(60.0), np.ones(60), 1e-4)
    rows = evidence.rows((0,), np.array([59]))
    assert rows.values[0, rows.weight[0] > 0].tolist() == list(range(16, 60))


def test_a_gain_of_few_nights_is_less_by_four_of_their_number():
    evidence = StepEvidence(np.where(np.arange(20) >= 10, 1.0, 0.0), np.ones(20), 1e-4)
    seen = evidence.steps((0,), 8)
    whole = seen.gain + seen.excess
    nights = (seen.night + 1)[whole > 1]
    assert seen.gain[whole > 1] / whole[whole > 1] == pytest.approx(1 - 4 / nights)


def test_ten_nights_after_its_first_place_say_where_a_step_lies():
    step = WeighedStep(
        25, Range(20, 20, 20, None), Range(20, 20, 20, None), 0.1, 0.01, 20, 0.0, "found", (0,)
    )
    shown = Shown([(night, night - 9, 8.0) for night in range(25, 36)])
    assert settled(shown, step, (0,), NIGHT, ()).where.place == 30 - 9


@pytest.mark.parametrize(("share", "low"), [(0.9901, 9), (0.9899, 8)])
def test_a_range_holds_ninety_nine_hundredths_of_the_likelihood(share, low):
    found = locate(np.array([8, 9]), np.log([1 - share, share]), 1, [])
    assert (found.place, found.low, found.high) == (9, low, 9)


@pytest.mark.parametrize(("width", "weight"), [(2.9, 1.0), (3.0, 1.0), (3.1, 3 / 3.1)])
def test_a_night_counts_less_whose_interval_is_three_times_as_wide_as_usual(width, weight):
    widths = [1.0] * 9 + [width]
    points = [Point(str(n), 100.0, (100.0, 100.0 + each)) for n, each in enumerate(widths)]
    evidence, _ = evidence_of(Series(tuple(points)), PointColumns.of(points))
    assert evidence.weight[-1] == pytest.approx(weight)


def test_a_rerun_is_believed_no_more_than_two_processes_agree():
    assert Rerun("a", "b", 1.1, (1.1, 1.1)).log[1] == 0.003
    wide = math.exp(2 * 1.96 * 0.0031)
    assert Rerun("a", "b", 1.0, (1.0, wide)).log[1] == pytest.approx(0.0031)


@pytest.mark.parametrize(("digits", "is_read"), [(6, False), (7, True)])
def test_a_commit_is_named_by_seven_digits(tmp_path, digits, is_read):
    path = tmp_path / "triage.toml"
    path.write_text(f'[[reset]]\nseries = "s"\ncommit = "{"a" * digits}"\nreason = "moved"\n')
    if is_read:
        assert len(load_triage(path).reset) == 1
        return
    with pytest.raises(ValueError, match="give 7 digits"):
        load_triage(path)


@pytest.mark.parametrize(
    ("after", "is_change"), [(1.25, False), (math.nextafter(1.25, 2), True), (0.75, False)]
)
def test_a_change_is_one_beyond_the_floor(after, is_change):
    """A relative floor, and one in the metric's own unit."""
    assert differs(1.0, after, 0.25, 0.0) == is_change
    assert differs(1.0, after, 0.0, 0.25) == is_change


def test_a_change_is_one_beyond_both_floors():
    assert not differs(1.0, 1.2, 0.1, 0.3)
    assert not differs(1.0, 1.2, 0.3, 0.1)
    assert differs(1.0, 1.2, 0.1, 0.1)
