"""Suspicions measured again: which, in what order, and what is kept of it."""

import json
import re
from datetime import date
from pathlib import Path
from typing import NamedTuple

import pytest
from asv_writer import write_benchmarks, write_commit
from planted_nights import EXACT, FIRST_DAY, MACHINE, TIMING, Nights, noisy

from harness.files import StoreError
from harness.tracking.nightly.measure_again import PairReruns, forget, measure_again, suspicions
from harness.tracking.nightly.night import look_over, measure_suspicions
from harness.tracking.reruns import StoredRerun, add_reruns, by_series, load_reruns
from harness.tracking.triage import Triage

TODAY = date(2026, 1, 30)
ITL = (MACHINE, "py3.11", "suite.track_itl")
SLOW = TIMING._replace(name="suite.track_ttft")


class Measuring(NamedTuple):
    """In asv's place: every measurement of a commit gives its next value."""

    values: dict[str, list[float]]
    asked: list[tuple[str, str]]
    machine: str = MACHINE

    def measure(self, commit: str, target: Path, *, bench: str = "") -> str:
        self.asked.append((commit, bench))
        if not self.values[commit]:
            return "asv ended with status 1"
        value = self.values[commit].pop(0)
        results = target / "results"
        chosen = [each for each in (TIMING, SLOW) if re.search(bench, each.series[0])]
        write_benchmarks(results, [TIMING, SLOW])
        write_commit(results, commit, FIRST_DAY, [(each, [value]) for each in chosen])
        return ""


@pytest.fixture
def jumped(tmp_path) -> Nights:
    """Twenty nights; two timings jump on the last, an exact metric does not."""
    nights = Nights(tmp_path / "toy", 20)
    nights.plant(
        [
            (TIMING, noisy([1.0] * 19 + [1.3])),
            (SLOW, noisy([2.0] * 19 + [2.6], seed=2)),
            (EXACT, [[100, 0]] * 20),
        ]
    )
    return nights


def suspected(nights: Nights, machine: str = MACHINE):
    known = load_reruns(nights.results)
    return suspicions(look_over(nights.place, Triage(), TODAY).verdicts, machine, known)


def stored(nights: Nights, ratio: float = 1.3, series: str = ITL[2]) -> StoredRerun:
    return StoredRerun(
        machine=MACHINE,
        environment="py3.11",
        series=series,
        before=nights.hashes[18],
        after=nights.hashes[19],
        ratio=ratio,
        ci95=(ratio * 0.99, ratio * 1.01),
        rounds=5,
    )


def test_what_jumped_together_is_measured_together(jumped):
    (found,) = suspected(jumped)
    assert (found.before, found.after) == tuple(jumped.hashes[18:])
    assert found.keys == {ITL, (*ITL[:2], "suite.track_ttft")}
    for name in ("suite.track_itl", "suite.track_ttft"):
        assert re.search(found.bench, name)
    for name in ("suite.track_itl_p99", "xsuite.track_itl", "suiteXtrack_itl"):
        assert not re.search(found.bench, name)
    assert suspected(jumped, "another machine") == []


def test_what_was_measured_again_with_these_two_is_not_asked_for(jumped):
    add_reruns(jumped.results, [stored(jumped, 1.06)])
    (found,) = suspected(jumped)
    assert found.keys == {(*ITL[:2], "suite.track_ttft")}
    add_reruns(jumped.results, [stored(jumped, 1.06, "suite.track_ttft")])
    assert suspected(jumped) == []


def test_the_newest_that_has_a_value_is_what_is_measured_again(tmp_path):
    nights = Nights(tmp_path / "toy", 20)
    nights.plant([(TIMING, [*noisy([1.0] * 18 + [1.3]), None])])
    (found,) = suspected(nights)
    assert (found.before, found.after) == (nights.hashes[17], nights.hashes[18])


def test_parameters_are_quoted_in_what_asv_is_asked_for(tmp_path):
    nights = Nights(tmp_path / "toy", 20)
    odd = TIMING._replace(params={"shape": ["a|b", "[c]"]})
    values = noisy([1.0] * 19 + [1.3])
    nights.plant([(odd, [[value, value] for value in values])])
    (found,) = suspected(nights)
    assert {name for name in odd.series if re.search(found.bench, name)} == set(odd.series)
    assert not re.search(found.bench, "suite.track_itl('a')")


@pytest.mark.parametrize("rounds", [3, 4, 5])
def test_both_go_first_in_turn_and_the_ratio_is_theirs(jumped, rounds):
    (suspicion,) = suspected(jumped)
    before, after = suspicion.before, suspicion.after
    asv = Measuring({before: noisy([1.0] * rounds), after: noisy([1.25] * rounds, seed=3)}, [])
    turns = []
    again = measure_again(asv, jumped.place.reruns, suspicion, rounds, lambda: turns.append(0))
    order = "".join("ba"[commit == after] for commit, _ in asv.asked)
    assert order == ("baab" * rounds)[: 2 * rounds]
    assert {bench for _, bench in asv.asked} == {suspicion.bench}
    assert len(turns) == 2 * rounds
    assert again.missing == []
    assert {each.series for each in again.reruns} == {key[2] for key in suspicion.keys}
    for each in again.reruns:
        assert (each.before, each.after, each.rounds) == (before, after, rounds)
        assert each.ci95[0] < each.ratio < each.ci95[1]
        assert each.ratio == pytest.approx(1.25, rel=0.03)


def test_what_a_killed_run_had_measured_again_is_not_measured_once_more(jumped):
    (suspicion,) = suspected(jumped)
    before, after = suspicion.before, suspicion.after
    asv = Measuring({before: [1.0] * 3, after: [1.2] * 3}, [])

    def dies() -> None:
        if len(asv.asked) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_again(asv, jumped.place.reruns, suspicion, 3, dies)
    again = measure_again(asv, jumped.place.reruns, suspicion, 3, lambda: None)
    assert len(asv.asked) == 6
    assert [each.rounds for each in again.reruns] == [3, 3]
    forget(jumped.place.reruns, but=[suspicion])
    assert len(list(jumped.place.reruns.iterdir())) == 6
    forget(jumped.place.reruns)
    assert list(jumped.place.reruns.iterdir()) == []


def test_what_cannot_be_measured_again_is_said(jumped):
    (suspicion,) = suspected(jumped)
    asv = Measuring({suspicion.before: [1.0], suspicion.after: []}, [])
    again = measure_again(asv, jumped.place.reruns, suspicion, 3, lambda: None)
    assert again == PairReruns(
        [], [f"{suspicion.after[:10]} could not be measured again: asv ended with status 1"]
    )


@pytest.mark.parametrize("bad", [float("nan"), 0.0, -1.0])
def test_what_gives_no_ratio_is_said(jumped, bad):
    (suspicion,) = suspected(jumped)
    asv = Measuring({suspicion.before: [bad] * 3, suspicion.after: [1.0] * 3}, [])
    again = measure_again(asv, jumped.place.reruns, suspicion, 3, lambda: None)
    assert again.reruns == []
    assert len(again.missing) == 2
    assert all("gave no ratio" in sentence for sentence in again.missing)


def measured_again(nights: Nights, asv: Measuring, most: int = 2):
    looked = look_over(nights.place, Triage(), TODAY)
    return measure_suspicions(
        asv, nights.place, looked, most=most, rounds=5, on_turn=lambda total: None
    )


@pytest.mark.parametrize(("ratio", "word"), [(1.3, "worse"), (1.0, "no_change_shown")])
def test_a_re_run_settles_a_suspicion_on_its_first_night(jumped, ratio, word):
    before, after = jumped.hashes[18:]
    asv = Measuring({before: noisy([1.0] * 5), after: noisy([ratio] * 5, seed=3)}, [])
    assert look_over(jumped.place, Triage(), TODAY).verdicts[ITL].word == "suspicious"
    assert measured_again(jumped, asv) == (1, [(before, after)], 0, [])
    verdict = look_over(jumped.place, Triage(), TODAY).verdicts[ITL]
    assert verdict.word == word
    if word == "worse":
        assert verdict.findings.changes[-1].certainty == "confirmed"
    assert measured_again(jumped, asv) == (0, [], 0, [])
    assert len(asv.asked) == 10


DAY_11 = [1.004, 0.985, 1.013, 0.981, 1.035, 1.031, 1.005, 1.005, 1.027, 0.99, 0.986, 1.04, 1.072]
"""10 % more from day 11 on, which noise makes look like day 12."""


@pytest.fixture
def day_11(tmp_path) -> tuple[Nights, Measuring]:
    nights = Nights(tmp_path / "toy", 13)
    nights.plant([(TIMING, DAY_11)])
    costs = [1.0] * 11 + [1.1] * 2
    values = {
        commit: noisy([cost] * 20, seed=number)
        for number, (commit, cost) in enumerate(zip(nights.hashes, costs, strict=True))
    }
    return nights, Measuring(values, [])


def test_a_re_run_that_leaves_two_commits_is_followed_by_one_that_tells_them_apart(
    day_11, capsys, monkeypatch
):
    monkeypatch.setenv("HOME", str(day_11[0].folder))
    monkeypatch.setattr("harness.tracking.nightly.run_asv.Asv.measure", day_11[1].measure)
    ended = day_11[0].end(capsys)
    hashes = day_11[0].hashes
    assert (ended.status, ended.result.reruns, ended.result.missing) == (1, 2, [])
    first, second = load_reruns(day_11[0].results)
    assert (first.before, first.after) == (hashes[10], hashes[12])
    assert (second.before, second.after) in [(hashes[10], hashes[11]), (hashes[11], hashes[12])]
    assert first.newest == second.newest == hashes[12]
    (alert,) = ended.result.alerts
    assert [each.commit for each in alert.plausible] == [hashes[11]]
    assert (alert.commit, alert.last_before) == (hashes[11], hashes[10])


@pytest.mark.slow
def test_where_there_is_no_time_to_tell_them_apart_both_are_named(day_11, capsys, monkeypatch):
    monkeypatch.setenv("HOME", str(day_11[0].folder))
    monkeypatch.setattr("harness.tracking.nightly.run_asv.Asv.measure", day_11[1].measure)
    nights = day_11[0]
    early = nights.end(capsys, "--reruns", "1").result
    (alert,) = early.alerts
    assert [each.commit for each in alert.plausible] == nights.hashes[11:13]
    assert "1 more" in early.notes[0]
    later = nights.end(capsys, "--reruns", "1").result
    (alert,) = later.alerts
    assert (alert.commit, alert.first_named) == (nights.hashes[11], [])
    assert later.notes == []


def test_what_cannot_be_measured_again_is_tried_once_a_night(jumped, capsys, monkeypatch):
    monkeypatch.setenv("HOME", str(jumped.folder))
    asv = Measuring({commit: [] for commit in jumped.hashes}, [])
    monkeypatch.setattr("harness.tracking.nightly.run_asv.Asv.measure", asv.measure)
    ended = jumped.end(capsys, "--reruns", "3")
    assert len(asv.asked) == 1
    assert len(ended.result.missing) == 1


def test_what_there_is_no_time_for_waits(jumped):
    assert measured_again(jumped, Measuring({}, []), most=0) == (0, [], 1, [])


def test_re_runs_are_read_as_they_were_kept(jumped):
    assert load_reruns(jumped.results) == []
    one, other = stored(jumped), stored(jumped, 0.9, "suite.track_ttft")
    add_reruns(jumped.results, [one])
    add_reruns(jumped.results, [other])
    assert load_reruns(jumped.results) == [one, other]
    (run,) = by_series([one, other])[ITL]
    assert (run.before, run.after, run.ratio, run.ci95) == (
        one.before,
        one.after,
        one.ratio,
        one.ci95,
    )
    assert look_over(jumped.place, Triage(), TODAY).found.problems == [], (
        "asv's reader takes it for a result"
    )


@pytest.mark.parametrize("damage", [lambda text: text[:-20], lambda text: text.replace("/1", "/9")])
def test_a_file_of_re_runs_that_cannot_be_read_is_said_and_put_aside(jumped, damage):
    add_reruns(jumped.results, [stored(jumped)])
    path = jumped.results / "gcbench-reruns.json"
    path.write_text(damage(path.read_text()))
    with pytest.raises(StoreError, match=r"gcbench-reruns\.json"):
        load_reruns(jumped.results)
    looked = look_over(jumped.place, Triage(), TODAY)
    assert any("gcbench-reruns.json" in problem for problem in looked.found.problems)
    assert looked.verdicts[ITL].word == "suspicious"
    before, after = jumped.hashes[18:]
    assert measured_again(jumped, Measuring({before: [1.0] * 5, after: [1.2] * 5}, [])).done == 1
    assert len(load_reruns(jumped.results)) == 2
    assert path.with_name(f"{path.name}.unreadable").exists()


def test_a_re_run_that_is_none_is_a_note_and_no_end(jumped):
    add_reruns(jumped.results, [stored(jumped)])
    path = jumped.results / "gcbench-reruns.json"
    content = json.loads(path.read_text())
    content["reruns"][0] |= {"ratio": 0.0, "after": "f" * 40}
    path.write_text(json.dumps(content))
    assert look_over(jumped.place, Triage(), TODAY).verdicts[ITL].word == "suspicious"
