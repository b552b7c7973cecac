"""The judgement of a series: what is news, what several changes come to, what two commits say."""

import math
from datetime import date

import numpy as np
import pytest
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

from harness.tracking.detect.change import Change, Rerun
from harness.tracking.detect.examine import examine
from harness.tracking.detect.series import Point, Series
from harness.tracking.triage import NOTHING_SAID, Known, Reset, Triage
from harness.tracking.verdict import RECENT_POINTS, SeriesVerdict, Word, judge

TODAY = date(2026, 1, 30)
NAN = math.nan


def judged(values, kind="exact", triage=NOTHING_SAID, reruns=(), **about) -> SeriesVerdict:
    """Commits are called 0000000, 0000001 …"""
    points = tuple(Point(f"{n:07}", float(value)) for n, value in enumerate(values))
    series = Series(points, name="s", metric="m", kind=kind, **about)
    findings = examine(series, reruns, triage.resets(series))
    return judge(series, findings, triage, TODAY)


def between(of: SeriesVerdict, one: int, other: int) -> Word:
    return of.between(f"{one:07}", f"{other:07}").word


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([1, 1, 2], "worse"),
        ([2, 2, 1], "better"),
        ([1, 1, 1], "no_change_shown"),
        ([1], "insufficient"),
        ([NAN, 1, NAN], "insufficient"),
        ([1, *[2] * RECENT_POINTS], "worse"),
        ([1, *[2] * (RECENT_POINTS + 1)], "no_change_shown"),
        ([1, 2, 1], "same"),
        ([1, 2, 3, 2], "worse"),
        ([2, 3, 1], "better"),
        ([2, 1, 2], "same"),
    ],
)
def test_how_a_series_stands_is_what_its_news_come_to(values, word):
    of = judged([100 * value for value in values])
    assert of.word == word
    assert of.has_regression == (word == "worse")


def test_nights_without_a_value_let_no_news_grow_old():
    of = judged([100, 100, 130, *[NAN] * 20])
    assert (of.word, len(of.news), of.has_regression) == ("worse", 1, True)


def test_a_reset_ends_the_news_before_it():
    reset = Triage(reset=[Reset(metric="m", commit="0000004", reason="runner")])
    of = judged([100, 100, 130, 130, 90, 90], triage=reset)
    assert (of.word, of.news) == ("no_change_shown", ())
    assert (between(of, 1, 2), between(of, 1, 5), between(of, 4, 5)) == (
        "worse",
        "reset",
        "no_change_shown",
    )
    later = judged([100, 100, 130, 130, 90, 120], triage=reset)
    assert later.word == "worse"


def test_a_change_that_somebody_has_spoken_of_is_no_regression():
    known = Triage(acknowledged=[Known(metric="m", commit="0000002", reason="issue 12")])
    of = judged([100, 100, 130], triage=known)
    assert (of.word, of.has_regression) == ("worse", False)


def stepped(*levels: tuple[int, float], sd: float = 0.01, seed: int = 1) -> list[float]:
    noise = np.random.default_rng(seed)
    return [level * math.exp(sd * noise.standard_normal()) for n, level in levels for _ in range(n)]


def test_what_went_up_and_came_back_is_inconclusive_where_an_interval_is_too_wide():
    of = judged(stepped((20, 1.0), (4, 1.5), (4, 1.03), sd=0.02), "timing")
    assert [each.change.verdict for each in of.news] == ["worse", "better"]
    assert (of.word, of.is_unsettled, of.has_regression) == ("inconclusive", True, False)


def test_what_went_up_and_came_back_is_the_same_where_an_interval_shows_it():
    of = judged(stepped((40, 1.0), (3, 1.3), (4, 1.0), sd=0.0005), "timing", noise_floor=0.02)
    assert (of.word, of.is_unsettled, of.has_regression) == ("same", False, False)
    worse = judged(stepped((40, 1.0), (3, 1.3), (4, 1.1), sd=0.0005), "timing", noise_floor=0.02)
    assert (worse.word, worse.has_regression) == ("worse", True)


def test_commits_of_which_one_made_a_change_are_inconclusive_among_themselves():
    of = judged(stepped((15, 1.0), (1, 1.09), (4, 1.15), sd=0.02), "timing")
    (news,) = of.news
    suspects = news.change.plausible
    low, high = int(suspects[0]), int(suspects[-1])
    assert low < high
    assert between(of, low - 1, high) == "worse"
    assert between(of, high, low - 1) == "better"
    for one, other in ((low - 1, low), (high - 1, high)):
        assert of.between(f"{one:07}", f"{other:07}") == ("inconclusive", suspects)
    assert between(of, 0, low - 1) == between(of, high, 19) == "no_change_shown"


def test_a_jump_of_one_night_is_suspicious_until_a_re_run_says_more():
    values = [*stepped((19, 1.0)), 1.3]
    assert between(judged(values, "timing"), 18, 19) == "suspicious"
    pair = "0000018", "0000019"
    sure = judged(values, "timing", reruns=[Rerun(*pair, 1.3, (1.27, 1.33))])
    assert (sure.word, between(sure, 18, 19)) == ("worse", "worse")
    none = judged(values, "timing", reruns=[Rerun(*pair, 1.0, (0.98, 1.02))])
    assert (none.word, between(none, 18, 19)) == ("no_change_shown", "no_change_shown")


HIGH_AND_LOW = [100, 130, 130, 100, 100, 130, 130, 100, 100, 100, 100, 130, 100.5, 130, 100]
LEVELS = st.sampled_from([100.0, 100.5, 130.0, 131.0, 169.0, NAN])


@examples(100)
@given(
    st.lists(LEVELS, min_size=1, max_size=25),
    st.sampled_from(["exact", "timing"]),
    st.sets(st.integers(0, 24), max_size=2),
)
@example(HIGH_AND_LOW, "timing", set())
def test_the_table_of_levels_is_what_any_two_commits_say(values, kind, resets):
    said = [Reset(metric="m", commit=f"{place:07}", reason="r") for place in sorted(resets)]
    of = judged(values, kind, triage=Triage(reset=said))
    levels, table = of.levels()
    there = [n for n, value in enumerate(values) if math.isfinite(value)]
    assert [int(commit) for commit in levels] == there
    for one in there:
        for other in there:
            if one != other:
                expected = between(of, one, other)
                assert table[levels[f"{one:07}"]][levels[f"{other:07}"]] == expected
                turned = {"worse": "better", "better": "worse"}
                assert between(of, other, one) == turned.get(expected, expected)
    if of.news:
        first, newest = int(of.news[0].change.last_before), there[-1]
        # A commit that may have made another change as well is of no one level.
        if not any(
            might_divide(change, first) or might_divide(change, newest)
            for change in of.findings.changes
        ):
            assert between(of, first, newest) == of.word


def might_divide(change: Change, place: int) -> bool:
    """Whether some of the commits that may have made it are up to a point, and some behind it."""
    return int(change.plausible[0]) <= place < int(change.plausible[-1])
