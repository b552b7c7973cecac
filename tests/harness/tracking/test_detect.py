"""The detector on series whose changes are known, and by property."""

import math
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

from harness.metrics import METRICS
from harness.tracking import history
from harness.tracking.detect.change import Rerun
from harness.tracking.detect.examine import detect, examine
from harness.tracking.detect.from_figures import series_of
from harness.tracking.detect.series import Point, Series
from harness.tracking.detect.weigh import LASTING, LEAST_NIGHTS
from harness.tracking.triage import NOTHING_SAID
from harness.tracking.verdict import Word, judge

GOLDEN = Path(__file__).parents[2] / "golden" / "asv"
SEEDS = st.integers(0, 2**32 - 1)


def noisy(seed: int, nights: int = 40, sd: float = 0.03, **steps: float) -> np.ndarray:
    """Noise, and larger by each of ``steps`` (at_30=0.08) from its night on."""
    values = np.exp(sd * np.random.default_rng(seed).standard_normal(nights))
    for name, step in steps.items():
        values[int(name.removeprefix("at_")) :] *= 1 + step
    return values


def series(values, **judged) -> Series:
    return replace(Series.of([float(v) for v in values]), **judged)


def word(of: Series, reruns=()) -> Word:
    return judge(of, examine(of, reruns), NOTHING_SAID, date(2026, 1, 30)).word


def certain(values, **judged):
    return [(c.place, c.verdict) for c in detect(series(values, **judged)) if c.is_alert]


@examples(60)
@given(st.data(), st.integers(LEAST_NIGHTS, 60), st.sampled_from([-0.3, -0.03, 0.03, 0.08, 2.0]))
def test_a_step_without_noise_is_found_at_its_commit_whatever_the_place(data, nights, step):
    place = data.draw(st.integers(3, nights - LASTING))
    values = np.where(np.arange(nights) >= place, 5.0 * (1 + step), 5.0)
    (change,) = detect(series(values))
    assert (change.last_before, change.first_after) == (str(place - 1), str(place))
    assert change.verdict == ("worse" if step > 0 else "better")
    assert change.ratio == pytest.approx(1 + step, rel=1e-3)
    assert change.p < 1e-3
    assert change.found <= max(place + LASTING, LEAST_NIGHTS)


@examples(40)
@given(SEEDS, st.floats(1e-9, 1e9), st.sampled_from([0.0, 0.08, 0.3]))
def test_another_unit_changes_nothing(seed, factor, step):
    values = noisy(seed, at_25=step)
    assert word(series(values)) == word(series(values * factor))
    one, other = (examine(series(v)) for v in (values, values * factor))
    assert len(one.changes) == len(other.changes)
    for a, b in zip(one.changes, other.changes, strict=True):
        assert (a.place, a.found, a.verdict, a.certainty) == (
            b.place,
            b.found,
            b.verdict,
            b.certainty,
        )
        assert b.ratio == pytest.approx(a.ratio)
        assert b.before == pytest.approx(a.before * factor)


@examples(40)
@given(SEEDS, st.sampled_from(["timing", "exact"]))
def test_the_other_direction_turns_good_and_bad_and_nothing_else(seed, kind):
    values = noisy(seed, at_20=0.3, at_30=-0.2)
    turned = {"worse": "better", "better": "worse"}
    lower, higher, neither = (
        detect(series(values, direction=way, kind=kind)) for way in ("lower", "higher", "neither")
    )
    assert [replace(c, verdict=turned[c.verdict]) for c in lower] == higher
    assert [replace(c, verdict="changed") for c in lower] == neither


@examples(30)
@given(SEEDS, st.integers(10, 40))
def test_what_was_certain_stays_as_it_was_said(seed, nights):
    values = noisy(seed, at_15=0.2, at_28=-0.15)
    early = [c for c in detect(series(values[:nights])) if c.is_alert]
    late = detect(series(values))[: len(early)]
    where = {"place": 0, "last_before": "", "first_after": "", "plausible": (), "next_pair": None}
    assert [replace(c, **where) for c in late] == [replace(c, **where) for c in early]


@examples(60)
@example([0.0, 0.0, -3.0, 2.0, 2.0, -3.0, 1.0, 1.0, 1.0, 1e300], "timing")
@given(
    st.lists(
        st.sampled_from([1.0, 2.0, 0.0, -3.0, 1e-300, 1e300, math.nan, math.inf, -math.inf]),
        max_size=30,
    ),
    st.sampled_from(["timing", "exact"]),
)
def test_any_input_gets_an_answer(values, kind):
    found = examine(series(values, kind=kind))
    assert word(series(values, kind=kind)) in get_args(Word)
    for change in found.changes:
        assert 0 < change.place <= change.found < len(values)
        assert math.isfinite(values[change.place])


@examples(30)
@given(SEEDS, st.sets(st.integers(0, 39), max_size=12))
def test_nights_without_a_value_are_as_if_they_had_not_been(seed, missing):
    values = noisy(seed, at_25=0.3)
    there = [n for n in range(40) if n not in missing]
    holed = [v if n in there else (math.nan if n % 2 else math.inf) for n, v in enumerate(values)]
    with_holes = [c for c in detect(series(holed)) if c.is_alert]
    without = [c for c in detect(series(values[there])) if c.is_alert]
    assert [c.place for c in with_holes] == [there[c.place] for c in without]
    assert [c.ratio for c in with_holes] == [c.ratio for c in without]
    notes = " ".join(examine(series(holed)).notes)
    assert ("without a value" in notes) == any(n % 2 for n in missing)
    assert ("infinite" in notes) == any(n % 2 == 0 for n in missing)


def test_several_changes_in_one_series():
    found = certain(noisy(3, 60, 0.01, at_15=0.1, at_30=-0.1, at_45=0.2))
    assert found == [(15, "worse"), (30, "better"), (45, "worse")]


def test_a_constant_series_and_a_tied_one_have_not_changed():
    assert word(series([7.0] * 30)) == "no_change_shown"
    ties = np.random.default_rng(0).choice([1.0, 1.01], 60)
    assert certain(ties) == []


def test_one_and_two_accidents_are_no_change():
    values = noisy(1, 30, 0.01)
    values[-1] *= 1.25
    assert word(series(values)) == "suspicious"
    assert certain(values) == []
    values[-2] *= 1.20
    assert certain(values) == []
    assert certain([*values, *noisy(2, 5, 0.01)]) == []


def test_a_change_below_the_floor_is_none_however_certain():
    values = noisy(0, 60, 0.0005, at_30=0.015)
    assert certain(values) == []
    assert certain(values, noise_floor=0.01) == [(30, "worse")]
    assert certain(values, noise_floor=0.01, least_change=0.1) == []


def test_a_slow_drift_is_no_step():
    values = noisy(1, 60) * np.exp(0.003 * np.arange(60))
    found = examine(series(values))
    assert not any(change.is_alert for change in found.changes)
    assert "drifts slowly" in " ".join(found.notes)


def test_a_noisier_night_counts_less():
    values = noisy(5, 30, 0.01)
    values[-3:] *= 1.10
    badly = [(v * 0.99, v * 1.01) for v in values[:-3]] + [(v * 0.7, v * 1.3) for v in values[-3:]]
    points = [
        Point(str(n), float(v), i) for n, (v, i) in enumerate(zip(values, badly, strict=True))
    ]
    assert certain(values) == [(27, "worse")]
    assert not any(c.is_alert for c in detect(Series(tuple(points))))
    sampled = [
        p._replace(interval=None, samples=[*np.linspace(*p.interval, 5), None]) for p in points
    ]
    assert not any(c.is_alert for c in detect(Series(tuple(sampled))))


def test_values_that_are_not_above_0():
    values = 0.03 * np.random.default_rng(0).standard_normal(40)
    values[20:] += 1
    (change,) = detect(series(values, noise_floor=0.02, least_change=0.1))
    assert (change.place, change.verdict) == (20, "worse")
    assert change.after - change.before == pytest.approx(1, abs=0.05)
    (suspicion,) = detect(series(values[:21]))
    assert (suspicion.certainty, suspicion.next_pair) == ("suspected", None), "a re-run is a ratio"


def test_few_points_are_not_enough():
    assert not examine(series([])).is_enough
    assert not examine(series([1.0] * 7)).is_enough
    assert not examine(series([1.0], kind="exact")).is_enough
    assert examine(series([math.nan] * 9)).notes[-1] == "no point has a value"


# Re-runs.


def rerun(ratio: float, before: str = "28", after: str = "29") -> Rerun:
    return Rerun(before, after, ratio, (ratio * 0.97, ratio * 1.03))


def test_a_rerun_decides_a_suspicion_on_its_first_night():
    values = noisy(1, 30, 0.02)
    values[-1] = 1.10
    assert word(series(values)) == "suspicious"
    sure = examine(series(values), [rerun(1.09)])
    assert word(series(values), [rerun(1.09)]) == "worse"
    assert sure.changes[-1].certainty == "confirmed"
    assert sure.changes[-1].ratio == pytest.approx(1.09, abs=0.015)
    assert word(series(values), [rerun(1.0)]) == "no_change_shown"


def test_nights_that_differ_where_commits_do_not_are_the_machines_doing():
    values = noisy(1, 40, 0.01, at_29=0.1)
    both = [rerun(1.0), rerun(1.0, "28", "31")]
    found = examine(series(values), both)
    assert [c.certainty for c in found.changes] == ["machine"]
    assert word(series(values), both) == "no_change_shown"
    assert found.level == pytest.approx(1.1, rel=0.02)


def test_a_commit_cannot_differ_from_itself():
    values = noisy(1, 40, 0.01, at_29=0.1)
    commits = [str(min(n, 28)) if n < 35 else str(n) for n in range(40)]
    found = examine(Series.of([float(v) for v in values], commits))
    assert [c.certainty for c in found.changes] == ["machine"]


@pytest.mark.parametrize(
    ("odd", "says"),
    [
        (rerun(1.1, "x"), "is of no two points here"),
        (rerun(1.1, "29", "28"), "which came later"),
        (Rerun("28", "29", 1.1, (1.0, math.inf)), "run it again"),
        (Rerun("28", "29", math.nan, (1.0, 1.1)), "run it again"),
    ],
)
def test_a_rerun_that_says_nothing_is_noted(odd, says):
    found = examine(series(noisy(0, 30)), [odd])
    assert says in " ".join(found.notes)


# Resets.


def test_a_new_level_by_decree_is_no_change():
    values = noisy(0, 40, 0.01, at_20=0.2)
    assert certain(values) == [(20, "worse")]
    assert detect(series(values), resets=["20"]) == []
    exact = replace(series([5.0] * 4 + [9.0] * 4), kind="exact")
    assert len(detect(exact)) == 1
    assert detect(exact, resets=["4"]) == []
    assert "no commit of this series" in examine(exact, resets=["x"]).notes[0]


# Exact metrics.


def naive(values: list[int], floor: float, least: int) -> list[int]:
    """Places where a value leaves what the level began with."""
    found, level = [], values[0]
    for place, value in enumerate(values):
        if abs(value - level) > least and abs(value - level) > floor * abs(level):
            found.append(place)
            level = value
    return found


@given(
    st.lists(st.sampled_from([0, 1, 100, 101, 103, 110, 917]), min_size=1, max_size=30),
    st.sampled_from([0.0, 0.02]),
    st.sampled_from([0, 2, 8]),
)
def test_an_exact_metric_changes_at_the_first_commit(values, floor, least):
    found = detect(series(values, kind="exact", noise_floor=floor, least_change=least))
    assert [change.place for change in found] == naive(values, floor, least)
    assert all(change.found == change.place for change in found)
    assert all((c.after > c.before) == (c.verdict == "worse") for c in found)


def test_the_floors_of_gcbenchs_own_metrics_count():
    counts = [917.0] * 5 + [918.0] * 5 + [960.0]
    of = Series.of(counts).by(METRICS["gc_collections_gen0"])
    found = examine(of)
    assert [(c.place, c.before, c.after, c.verdict) for c in found.changes] == [
        (10, 917.0, 960.0, "worse")
    ]
    assert (word(of), found.changes[0].metric) == ("worse", "gc_collections_gen0")


def test_a_creep_is_found_where_it_passes_the_floor():
    creep = [1000.0 + 5 * n for n in range(12)]
    assert [c.place for c in detect(series(creep, kind="exact"))] == [5, 10]


def test_what_is_called_exact_and_is_not_says_so():
    of = replace(Series.of([1.0, 2.0], ["a", "a"]), kind="exact")
    found = examine(of)
    assert found.changes[0].certainty == "machine"
    assert "called exact" in found.notes[0]


def test_as_many_commits_as_values():
    with pytest.raises(ValueError, match="2 values and 1 commits"):
        Series.of([1.0, 2.0], ["a"])


def test_the_figures_of_an_asv_history_are_series():
    figures = history.load_history(GOLDEN).figures
    found = series_of(figures)
    current = figures[figures["is_current"]]
    assert sum(len(of.points) for of in found.values()) == len(current)
    key = ("box-a", "virtualenv-py3.11-TOY0", "suite.track_throughput('flat', 1024)")
    mine = found[key]
    rows = current[
        (current["machine"] == key[0])
        & (current["environment"] == key[1])
        & (current["series"] == key[2])
    ].sort_values("date")
    assert [p.value for p in mine.points] == rows["value"].tolist()
    assert [p.commit for p in mine.points] == rows["commit"].astype(str).tolist()
    assert (mine.name, mine.metric, mine.direction) == (key[2], "throughput", "higher")
