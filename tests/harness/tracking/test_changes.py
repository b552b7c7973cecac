"""Verdicts between two commits, taken from the judgement of each whole history."""

import math
from datetime import date
from pathlib import Path

import pandas as pd
import pytest
from asv_writer import Benchmark, write_benchmarks, write_commit
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics import Metric
from harness.tracking import history
from harness.tracking.changes import changes, find_known_commit, latest_changes
from harness.tracking.judge_figures import judge_all
from harness.tracking.triage import NOTHING_SAID

GOLDEN = Path(__file__).parents[2] / "golden" / "asv"
NAN = math.nan


def figures(*rows: dict) -> pd.DataFrame:
    """Figures of one series unless a row says otherwise."""
    usual = {
        "commit": "a" * 40,
        "date": pd.Timestamp("2026-01-01", tz="UTC"),
        "machine": "box",
        "environment": "py",
        "suite": "s",
        "benchmark": "s.track_it",
        "metric": "it",
        "series": "s.track_it",
        "value": 1.0,
        "unit": "s",
        "direction": "lower",
        "kind": "timing",
        "noise_floor": 0.02,
        "least_change": 0.0,
        "ci_low": NAN,
        "ci_high": NAN,
        "samples": None,
        "measured": pd.Timestamp("2026-02-01", tz="UTC"),
        "is_current": True,
    }
    return pd.DataFrame([usual | row for row in rows])


def judged(of: pd.DataFrame) -> dict:
    return judge_all(of, {}, NOTHING_SAID, date(2026, 2, 2)).verdicts


def between(of: pd.DataFrame, base: str, head: str) -> pd.DataFrame:
    return changes(of, judged(of), base, head)


def verdict(before: dict, after: dict) -> str:
    (row,) = between(figures(before, after | {"commit": "b" * 40}), "a", "b").to_dict("records")
    return row["verdict"]


def nights(values: list[float], **about) -> pd.DataFrame:
    """A series of nights, of commits 00…, 01…, and so on."""
    return figures(
        *(
            {"commit": f"{n:02}" * 20, "value": value} | day(n) | about
            for n, value in enumerate(values)
        )
    )


@pytest.mark.parametrize(
    ("direction", "before", "after", "expected"),
    [
        ("lower", 100.0, 110.0, "worse"),
        ("lower", 100.0, 90.0, "better"),
        ("higher", 100.0, 110.0, "better"),
        ("higher", 100.0, 90.0, "worse"),
        ("neither", 100.0, 110.0, "changed"),
        ("neither", 100.0, 90.0, "changed"),
        ("lower", 100.0, 101.9, "no_change_shown"),
        ("higher", 100.0, 98.1, "no_change_shown"),
        ("neither", 100.0, 100.0, "no_change_shown"),
        ("lower", 0.0, 0.0, "no_change_shown"),
        ("lower", 0.0, 1.0, "worse"),
        ("higher", -100.0, -90.0, "better"),
        ("lower", NAN, 1.0, "missing"),
        ("higher", 1.0, NAN, "missing"),
        ("neither", NAN, NAN, "missing"),
    ],
)
@pytest.mark.parametrize("kind", ["exact", "timing"])
def test_each_direction_has_its_verdict(kind, direction, before, after, expected):
    found = nights([before] * 10 + [after] * 5, kind=kind, direction=direction)
    (row,) = between(found, "09", "10").to_dict("records")
    assert row["verdict"] == expected


def test_too_few_nights_tell_nothing_of_a_timing():
    assert verdict({"value": 1.0}, {"value": 2.0}) == "insufficient"


VALUES = st.floats(-1e9, 1e9) | st.integers(-1000, 1000).map(float)
SIZES = st.sampled_from([0.0, 0.002, 0.02, 1.0])


@examples(100)
@given(VALUES, VALUES, SIZES, SIZES | st.just(8.0), st.sampled_from(["higher", "lower", "neither"]))
def test_exact_figures_differ_where_the_metrics_own_rule_says_so(
    before, after, floor, least, direction
):
    metric = Metric("it", "", direction, "exact", "", "", "", floor, least)
    about = {"kind": "exact", "direction": direction, "noise_floor": floor, "least_change": least}
    found = verdict(about | {"value": before}, about | {"value": after})
    if not metric.differs(before, after):
        assert found == "no_change_shown"
    elif direction == "neither":
        assert found == "changed"
    else:
        assert found == ("better" if (after > before) == (direction == "higher") else "worse")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(2.0, 3.0, 1.5), (0.0, 0.0, 1.0), (0.0, 2.0, math.inf), (0.0, -2.0, -math.inf), (2.0, 0.0, 0)],
)
def test_a_ratio_is_of_after_to_before(before, after, expected):
    both = figures({"value": before}, {"value": after, "commit": "b" * 40})
    assert between(both, "a", "b")["ratio"].tolist() == [expected]


def test_what_is_not_current_or_not_there_is_missing():
    both = figures(
        {"series": "old"},
        {"series": "old", "commit": "b" * 40, "is_current": False},
        {"series": "new", "commit": "b" * 40},
        {"series": "both"},
        {"series": "both", "commit": "b" * 40},
    )
    found = between(both, "aaaa", "bbbb")
    verdicts = dict(zip(found["series"], found["verdict"], strict=True))
    assert verdicts == {"old": "missing", "new": "missing", "both": "insufficient"}
    assert set(found["base"]) == {"a" * 40}
    assert set(found["head"]) == {"b" * 40}


def test_series_are_told_apart_by_machine_and_environment():
    both = figures(
        *(
            {
                "machine": machine,
                "environment": environment,
                "commit": commit * 40,
                "value": value,
                "kind": "exact",
            }
            for machine, environment, values in [
                ("box", "py", (1.0, 2.0)),
                ("box", "py2", (2.0, 1.0)),
                ("other", "py", (1.0, 1.0)),
            ]
            for commit, value in zip("ab", values, strict=True)
        )
    )
    found = between(both, "a", "b")
    assert list(found["verdict"]) == ["worse", "better", "no_change_shown"]
    assert list(found["ratio"]) == [2.0, 0.5, 1.0]


def test_a_throughput_gain_is_no_regression():
    """What asv itself calls one: see docs/history.md."""
    found = nights([100.0] * 10 + [130.0] * 5, direction="higher")
    assert list(between(found, "00", "14")["verdict"]) == ["better"]
    assert list(between(found, "14", "00")["verdict"]) == ["worse"]


def test_real_results_are_judged_both_ways():
    found = history.load_history(GOLDEN).figures
    up, down = (between(found, *pair).set_index("series") for pair in (("07", "1c"), ("1c", "07")))
    for table, expected in ((up, "better"), (down, "worse")):
        on_box_a = table[table["machine"] == "box-a"]
        assert set(on_box_a.loc["suite.Collections.track_gen0('default')"]["verdict"]) == {expected}
        assert set(on_box_a[on_box_a["metric"] == "throughput"]["verdict"]) == {"insufficient"}


def day(n: int) -> dict:
    return {"date": pd.Timestamp(n, unit="D", tz="UTC")}


def at(n: int) -> dict:
    return {"measured": pd.Timestamp(n, unit="D", tz="UTC")}


def test_each_series_last_two_commits():
    made = figures(
        {"series": "x", "commit": "c" * 40, "value": 3.0} | day(3),
        {"series": "x", "commit": "a" * 40, "value": 1.0} | day(1),
        {"series": "x", "commit": "b" * 40, "value": 2.0} | day(2),
        {"series": "y", "commit": "b" * 40, "value": 1.0} | day(2),
        {"series": "y", "commit": "a" * 40, "value": 1.0} | day(1),
        {"series": "y", "commit": "c" * 40, "value": 9.0, "is_current": False} | day(3),
        {"series": "once"} | day(1),
        {"series": "z", "commit": "d" * 40, "value": 5.0} | day(4) | at(9),
        {"series": "z", "commit": "e" * 40, "value": 4.0} | day(4) | at(8),
        {"series": "n", "commit": "b" * 40, "value": 2.0} | day(2),
        {"series": "n", "commit": "c" * 40, "value": 3.0} | day(3),
        {"series": "n", "commit": "d" * 40, "value": NAN} | day(4),
    )
    found = latest_changes(made, judged(made))
    rows = {row["series"]: row for row in found.to_dict("records")}
    ends = {series: (row["base"][0], row["head"][0]) for series, row in rows.items()}
    assert ends == {"x": ("b", "c"), "y": ("a", "b"), "z": ("e", "d"), "n": ("b", "c")}
    assert (rows["x"]["before"], rows["x"]["after"]) == (2.0, 3.0)


def test_one_commit_leaves_nothing_to_compare(tmp_path):
    benchmark = Benchmark("track_it")
    write_benchmarks(tmp_path, [benchmark])
    write_commit(tmp_path, "aaaaaaaa", 1, [(benchmark, [1.0])])
    made = history.load_history(tmp_path).figures
    found = latest_changes(made, judged(made))
    assert len(found) == 0
    assert {"base", "head", "before", "after", "ratio", "verdict"} <= set(found.columns)


def test_commits_by_their_beginnings():
    some = figures({"commit": "ab" * 20}, {"commit": "ac" * 20}, {"commit": "b" * 40})
    assert find_known_commit(some, "ab") == "ab" * 20
    assert find_known_commit(some, "AC") == "ac" * 20
    assert find_known_commit(some, "b" * 40) == "b" * 40


@pytest.mark.parametrize(
    ("base", "head", "says"),
    [
        ("a", "b", "'a' may be any of abab.*, acac.*; give more digits"),
        ("ab", "f", "no commit 'f' in these results.*the newest here are"),
        ("ab", "", "no commit ''"),
        ("ab", "b" * 41, "no commit"),
        ("HEAD", "b", "no commit 'HEAD'.*git rev-parse"),
        ("ab", "abab", "the same commit"),
    ],
)
def test_commits_that_are_not_one_each_are_refused(base, head, says):
    some = figures({"commit": "ab" * 20}, {"commit": "ac" * 20}, {"commit": "b" * 40})
    with pytest.raises(ValueError, match=says) as caught:
        between(some, base, head)
    assert "\n" not in str(caught.value)


@examples(50)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), VALUES), max_size=8))
def test_swapping_the_commits_turns_every_verdict(made):
    rows = {(commit, series): value for commit, series, value in made}
    all_rows = figures(
        {"commit": "a" * 40, "series": "s0"},
        {"commit": "b" * 40, "series": "s0"},
        *(
            {
                "commit": commit * 40,
                "series": series,
                "value": value,
                "noise_floor": 0.0,
                "kind": "exact",
            }
            for (commit, series), value in rows.items()
        ),
    )
    turned = {"better": "worse", "worse": "better"}
    there, back = (
        between(all_rows, *pair).set_index("series")["verdict"].to_dict()
        for pair in (("a", "b"), ("b", "a"))
    )
    assert {series: turned.get(found, found) for series, found in there.items()} == back
    assert there.keys() == {series for _, series in rows} | {"s0"}
