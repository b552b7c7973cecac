"""All series of a page together: what they share, what befell the machine, what no step can be."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from asv_writer import Benchmark, write_benchmarks, write_commit
from hypothesis import given
from hypothesis import strategies as st

from dashboards.site import build_site
from harness.tracking.detect.bounds import (
    LATEST_NIGHTS,
    WINDOW,
    by_night,
    most_by_night,
    most_gained,
)
from harness.tracking.detect.change import Rerun
from harness.tracking.detect.examine import examine
from harness.tracking.detect.page import MachineEvent, examine_page
from harness.tracking.detect.page_past import FEW_NIGHTS, certain_by_past, gains_of
from harness.tracking.detect.series import PointColumns, Series
from harness.tracking.detect.shared import common
from harness.tracking.detect.weigh import CERTAIN, SUSPECT, StepLimits
from harness.tracking.detect.without_a_step import without_a_step
from harness.tracking.event_words import event_sentence
from tests.examples import examples

NIGHTS, PLACE = 60, 55
SEEDS = st.integers(0, 2**32 - 1)


def noise(seed: int, series: int = 30, sd: float = 0.01) -> np.ndarray:
    return sd * np.random.default_rng(seed).standard_normal((series, NIGHTS))


def keyed(logs: np.ndarray, name: str = "suite.time_{}") -> dict[tuple[str, str, str], Series]:
    return {
        ("box", "py", name.format(n)): Series.of(np.exp(row).tolist()) for n, row in enumerate(logs)
    }


def page_of(all_series, reruns=None):
    return examine_page(all_series, [str(n) for n in range(NIGHTS)], reruns or {}, lambda of: ())


def alerts(page) -> set[str]:
    return {
        key[2]
        for key, found in page.findings.items()
        for change in found.changes
        if change.is_alert
    }


def test_the_common_part_is_what_most_rows_do_and_few_do_not_move_it():
    logs = noise(1)
    shift = np.where(np.arange(NIGHTS) >= PLACE, 0.05, 0.0)
    logs += shift
    logs[:10] += np.where(np.arange(NIGHTS) >= 20, 0.3, 0.0)
    found = common(logs, [np.array([n]) for n in range(len(logs))])
    assert found.part[PLACE:].mean() - found.part[:20].mean() == pytest.approx(0.05, abs=0.01)
    assert np.ptp(found.part[:20]) < 0.02
    kept = found.shrunk(shift)
    assert np.abs(kept).max() < 0.02, "what levels say is not taken out once more"


def test_the_common_part_of_fewer_than_five_is_not_known():
    votes = [np.array([n]) for n in range(4)]
    assert np.isnan(common(noise(1, 4), votes).part).all()
    assert np.isfinite(common(noise(1, 5), [*votes, np.array([4])]).part).all()


@given(SEEDS)
@examples(20)
def test_variants_of_a_benchmark_have_one_vote(seed):
    logs = noise(seed, 20)
    logs[:12] += np.where(np.arange(NIGHTS) >= PLACE, 0.2, 0.0)
    votes = [np.arange(12), *(np.array([n]) for n in range(12, 20))]
    part = common(logs, votes).part
    assert abs(part[PLACE:].mean() - part[:PLACE].mean()) < 0.03


@pytest.mark.parametrize("size", [0.05, -0.05])
def test_what_all_do_at_once_is_the_machines(size):
    logs = noise(2) + np.where(np.arange(NIGHTS) >= PLACE, size, 0.0)
    page = page_of(keyed(logs))
    (event,) = page.events
    assert event.kind == "step"
    assert str(PLACE) in event.commits
    assert event.ratio == pytest.approx(math.exp(size), abs=0.01)
    assert event.next_pair is not None
    assert alerts(page) == set()


def test_what_each_adds_to_what_all_do_is_the_machines_too():
    rng = np.random.default_rng(3)
    logs = noise(3) + (np.arange(NIGHTS) >= PLACE) * (0.06 + 0.04 * rng.standard_normal((30, 1)))
    page = page_of(keyed(logs))
    assert alerts(page) == set()
    said = {c.certainty for found in page.findings.values() for c in found.changes}
    assert "machine" in said


def test_a_rerun_that_has_it_too_makes_it_a_commits():
    logs = noise(4) + np.where(np.arange(NIGHTS) >= PLACE, 0.1, 0.0)
    all_series = keyed(logs)
    (event,) = page_of(all_series).events
    rerun = Rerun(*event.next_pair, 1.1, (1.08, 1.12), str(NIGHTS - 1))
    assert len(event.representatives) == 3
    reruns = {key: [rerun] for key in event.representatives}
    page = page_of(all_series, reruns)
    assert page.events == []
    assert len(alerts(page)) > 15
    fewer = dict(list(reruns.items())[:2])
    assert page_of(all_series, fewer).events, "two series do not say what all share"


def test_what_a_rerun_has_of_all_is_left_in_the_variants_of_a_benchmark_too():
    logs = noise(4, 240) + np.where(np.arange(NIGHTS) >= NIGHTS - 3, 0.1, 0.0)
    rows = enumerate(keyed(logs).values())
    all_series = {("box", "py", f"suite.time_{n // 6}({n % 6})"): each for n, each in rows}
    assert page_of(all_series).events
    rerun = Rerun(str(NIGHTS - 4), str(NIGHTS - 1), 1.1, (1.08, 1.12), str(NIGHTS - 1))
    page = page_of(all_series, {key: [rerun] for key in list(all_series)[:18:6]})
    assert page.events == []
    assert len(alerts(page)) > 120


def test_one_of_many_that_changes_is_found_beside_a_machines_night():
    logs = noise(5)
    logs[:, 57] += 0.05
    logs[7] += np.where(np.arange(NIGHTS) >= PLACE, 0.2, 0.0)
    page = page_of(keyed(logs))
    assert alerts(page) == {"suite.time_7"}
    (event,) = page.events
    assert (event.kind, event.commits) == ("night", ("57",))


def test_a_noisy_week_is_told_and_counts_less():
    logs = noise(6)
    logs[:, PLACE:] *= 6
    page = page_of(keyed(logs))
    kinds = {event.kind for event in page.events}
    assert "noise" in kinds
    assert alerts(page) == set()


@pytest.mark.parametrize(("size", "told"), [(0.0105, True), (0.0095, False)])
def test_what_all_share_is_told_from_a_hundredth_on(size, told):
    logs = noise(8, sd=1e-5)
    logs[:, 57] += size
    assert bool(page_of(keyed(logs)).events) == told


@pytest.mark.parametrize(("apart", "told"), [(0.0155, True), (0.0145, False)])
def test_a_night_is_noisy_from_one_and_a_half_times_the_usual_on(apart, told):
    size = np.full(NIGHTS, 0.01)
    size[57] = apart
    logs = size * (-1.0) ** (np.arange(30)[:, None] + np.arange(NIGHTS))
    assert bool(page_of(keyed(logs)).events) == told


def event(**given) -> MachineEvent:
    usual = {
        "machine": "box",
        "environment": "py",
        "unit": "seconds",
        "kind": "step",
        "benchmarks": 26,
        "ratio": 1.02,
        "last_before": "a" * 40,
        "commits": ("b" * 40,),
        "next_pair": ("a" * 40, "c" * 40),
        "representatives": (),
        "is_recent": True,
    }
    return MachineEvent(**(usual | given))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "event on box: 26 benchmarks (unit: seconds) are +2.0 % together from bbbbbbbb on"),
        ({}, "until aaaaaaaa and cccccccc, measured again side by side, differ too."),
        ({"next_pair": None}, "side by side the commits do not differ."),
        ({"commits": ("b" * 40, "d" * 40)}, "from one of bbbbbbbb to dddddddd on"),
        ({"kind": "night"}, "were +2.0 % together at bbbbbbbb alone. It is taken out"),
        ({"kind": "noise", "ratio": 2.0}, "scattered 2.0 times as widely as usual at bbbbbbbb."),
        (
            {"kind": "noise", "ratio": 2.0, "commits": ("b" * 40, "d" * 40)},
            "as widely as usual on 2 nights from bbbbbbbb on.",
        ),
        ({"unit": ""}, "on box: 26 benchmarks are"),
    ],
)
def test_events_are_said_in_a_sentence(given, says):
    assert says in event_sentence(event(**given))


def test_limits_grow_with_the_number_of_series():
    assert StepLimits.of_page(40) == StepLimits(CERTAIN, CERTAIN, SUSPECT, False)
    many = StepLimits.of_page(400)
    assert many.certain == pytest.approx(CERTAIN + 3.0 * math.log(10))
    assert many.confirmed == pytest.approx(CERTAIN + 2.0 * math.log(10))
    assert many.suspect == pytest.approx(SUSPECT + 2.0 * math.log(10))
    assert many.by_own_past
    assert many.held.certain == math.inf
    assert many.eased.certain == many.eased.confirmed == CERTAIN


@given(SEEDS, st.sampled_from([0.0, 0.03, 0.08, 0.3]), st.sampled_from(["normal", "slow", "steps"]))
@examples(40)
def test_what_is_cleared_at_once_has_no_step_when_it_is_walked_through(seed, size, kind):
    rng = np.random.default_rng(seed)
    logs = noise(seed, 6, 0.02)
    if kind == "slow":
        logs += np.where(rng.random(logs.shape) < 0.2, rng.uniform(0.05, 0.3, logs.shape), 0.0)
    if kind == "steps":
        logs = np.round(logs, 2)
    logs += size * (np.arange(NIGHTS) >= rng.integers(8, NIGHTS))
    limits = StepLimits.of_page(1000)
    all_series = keyed(logs)
    clear = without_a_step(all_series, gains_of(all_series), limits)
    for key, findings in clear.items():
        walked = examine(all_series[key], limits=limits)
        assert walked.changes == findings.changes == ()
        assert walked.level == pytest.approx(findings.level)
        assert walked.noise == pytest.approx(findings.noise)
    if size == 0.0 and kind == "normal":
        assert clear


@given(SEEDS)
@examples(20)
def test_the_bound_of_a_night_is_the_largest_of_its_places(seed):
    logs = noise(seed, 2)
    gains = most_gained(logs, 1e-3)
    nights = by_night(gains)
    for night in (10, 30, NIGHTS - 1):
        places = [n for n in range(night - LATEST_NIGHTS + 1, night + 1) if n >= 0]
        best = max(gains[1, first, night - first] for first in places)
        assert nights[1, night] == best
    assert (most_by_night(logs, 1e-3) == nights).all()


@given(SEEDS, st.integers(1, 8), st.integers(1, 70))
@examples(30)
def test_a_step_must_gain_more_than_any_did_on_the_nights_before(seed, series, number):
    rng = np.random.default_rng(seed)
    gains = {n: 10 * rng.pareto(2, number) for n in range(series)}
    nights = dict.fromkeys(gains, np.arange(number))
    needed = certain_by_past(gains, nights, number, 7.8)
    changed = set()
    for night in range(number):
        before = range(max(0, night - WINDOW), night)
        left = dict(changed)
        seen = [gains[n][m] for n in gains for m in before if m < left.get(n, number)]
        assert needed[night] == max([7.8, *seen])
        changed |= {
            (n, night)
            for n in gains
            if night >= FEW_NIGHTS and n not in left and gains[n][night] >= needed[night]
        }


def test_the_gains_of_a_series_are_those_of_its_own_nights():
    late = {"late": np.array([9.0, 30.0])}
    needed = certain_by_past(late, {"late": np.array([3, 5])}, 8, 7.8)
    assert needed.tolist() == [7.8, 7.8, 7.8, 7.8, 9.0, 9.0, 30.0, 30.0]


@pytest.mark.parametrize(("night", "needed"), [(15, 20.0), (16, 7.8)])
def test_a_step_that_was_certain_is_no_past_once_there_is_one(night, needed):
    gain = np.zeros(30)
    gain[night] = 20.0
    found = certain_by_past({"one": gain}, {"one": np.arange(30)}, 30, 7.8)
    assert found[night + 1] == needed


@pytest.mark.slow
def test_a_page_names_nobody_more_than_once_in_thirty_nights_whatever_its_noise():
    """As of shared runners: now and then a series is a tenth slower for five nights."""
    false, pages = 0, 8
    for seed in range(pages):
        rng = np.random.default_rng([seed, 7])
        logs, begins = noise(seed, 60, 0.02), rng.random((60, NIGHTS)) < 0.002
        for after in range(5):
            logs[:, after:] += 0.1 * begins[:, : NIGHTS - after]
        found = page_of(keyed(logs)).findings.values()
        alerts = {each.found for of in found for each in of.changes if each.is_alert}
        false += sum(night >= NIGHTS - 30 for night in alerts)
    assert false <= pages


def test_a_night_such_as_there_were_before_gains_little():
    row = np.zeros(NIGHTS)
    row[::4] = 0.1
    row += noise(1, 1, 0.001)[0]
    row[PLACE:] = 0.1
    gains = most_gained(row[None], 1e-3)[0]
    assert gains[PLACE, 4] == pytest.approx(5 * math.log(45 / 12))
    quiet = np.where(np.arange(NIGHTS) >= PLACE, 0.1, 0.0)[None]
    assert most_gained(quiet, 1e-3)[0, PLACE, 4] == pytest.approx(5 * math.log(45))
    assert (most_gained(quiet, 1e-3)[0, :3] == 0).all()


def test_columns_are_the_points_they_were_made_of():
    series = Series.of([1.0, 2.0, math.nan])
    points = (replace(series).points[0]._replace(interval=(0.5, 1.5)), *series.points[1:])
    columns = PointColumns.of(points)
    assert PointColumns.of(columns) is columns
    assert list(columns)[:2] == list(points[:2])
    assert math.isnan(columns[2].value)
    assert list(columns[:1]) == list(points[:1])


def test_what_befell_the_machine_stands_on_the_overview(tmp_path):
    rng = np.random.default_rng(1)
    all_ = [
        Benchmark(f"suite{n}.track_it", attributes={"unit": "s", "direction": "lower"})
        for n in range(12)
    ]
    write_benchmarks(tmp_path / "results", all_)
    for night in range(30):
        slow = 1.06 if night >= 25 else 1.0
        figures = [(each, [slow * float(np.exp(0.01 * rng.standard_normal()))]) for each in all_]
        write_commit(tmp_path / "results", f"{night:08x}{0:032x}", 20000 + night, figures)
    build_site(tmp_path / "results", tmp_path / "site", repository=tmp_path)
    page = (tmp_path / "site" / "index.html").read_text()
    said = re.search(
        r'class="note">Machine event on box: 12 benchmarks \(unit: s\) are \+[56]\.\d % together.*'
        r'href="commit/[0-9a-f]+\.html">the commit of (\d{4}-\d\d-\d\d)</a>',
        page,
    )
    assert said is not None
    commits = (tmp_path / "site" / "commits.html").read_text()
    marked = [row for row in commits.split("<tr ") if "machine event" in row]
    assert said[1] in "".join(marked)
    assert 'data-row=" machine"' in marked[0], "only with marks shows it"
