from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.tracking.detect.change import Change
from harness.tracking.detect.examine import detect
from harness.tracking.detect.series import Series
from harness.tracking.triage import Triage, apply, load_triage

TODAY = date(2026, 11, 21)
FILE = """
[[acknowledged]]
series = "serving.*"
commit = "bbbbbbb"
until = 2026-11-21
reason = "issue 12"

[[expected]]
metric = "tpot_*"
commit = "BBBBBBBB"
reason = "traded for memory"

[[ignored]]
series = "*"
until = 2026-11-20
reason = "new machine"

[[reset]]
metric = "peak_rss"
commit = "ccccccc"
reason = "another allocator"
"""


def change(series: str = "serving.x", metric: str = "itl", first: str = "b" * 40) -> Change:
    return Change(
        series,
        metric,
        "a" * 40,
        first,
        1,
        3,
        (first, "d" * 40),
        ("f" * 40,),
        None,
        1.0,
        1.1,
        1.1,
        (1.05, 1.15),
        1e-6,
        "worse",
        "found",
    )


@pytest.fixture
def triage(tmp_path: Path) -> Triage:
    path = tmp_path / "triage.toml"
    path.write_text(FILE)
    return load_triage(path)


def test_what_has_been_said_of_changes(triage):
    changes = [change(), change(metric="tpot_p99"), change("other"), change(first="e" * 40)]
    judged = apply(changes, triage, TODAY)
    assert [(each.status, each.reason) for each in judged] == [
        ("acknowledged", "issue 12"),
        ("expected", "traded for memory"),
        ("open", ""),
        ("open", ""),
    ]
    assert judged[2].note == "ignored until 2026-11-20: new machine"
    assert [each.change for each in judged] == changes


def test_an_entry_is_good_to_the_end_of_its_last_day(triage):
    (later,) = apply([change()], triage, date(2026, 11, 22))
    assert (later.status, later.note) == ("open", "acknowledged until 2026-11-21: issue 12")
    (earlier,) = apply([change("other")], triage, date(2026, 11, 20))
    assert earlier.status == "ignored"


@pytest.mark.parametrize("commit", ["ddddddd", "fffffff"])
def test_a_commit_that_may_be_the_first_after_or_was_said_to_be_is_met(tmp_path, commit):
    path = tmp_path / "triage.toml"
    path.write_text(f'[[expected]]\nseries = "*"\ncommit = "{commit}"\nreason = "so"\n')
    assert apply([change()], load_triage(path), TODAY)[0].status == "expected"


def test_resets_reach_the_detector(triage):
    values = [1.0] * 10 + [2.0] * 10
    commits = [f"{n:040d}" for n in range(10)] + ["c" * 40] + [f"{n:040d}" for n in range(11, 20)]
    series = Series.of(values, commits)
    assert triage.resets(series) == []
    assert len(detect(series)) == 1
    from dataclasses import replace

    rss = replace(series, metric="peak_rss")
    assert triage.resets(rss) == ["ccccccc"]
    assert detect(rss, resets=triage.resets(rss)) == []


def test_no_file_says_nothing(tmp_path):
    assert load_triage(tmp_path / "none.toml") == Triage()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = [", "shows a triage file"),
        ("[[ignored]]\nseries = 'x'\nreason = 'y'", "missing required field `until`"),
        ("[[expected]]\nseries = 'x'\nreason = 'y'", "missing required field `commit`"),
        ("[[expected]]\nserie = 'x'", "unknown field `serie`"),
        ("[[wanted]]\nseries = 'x'", "unknown field `wanted`"),
        ("[[ignored]]\nseries = 'x'\nreason = ' '\nuntil = 2026-01-01", "has no reason"),
        ("[[ignored]]\nreason = 'y'\nuntil = 2026-01-01", "names neither series nor metric"),
        ("[[ignored]]\nseries = 'x'\nreason = 'y'\nuntil = 'soon'", "Expected `date`"),
        ("[[reset]]\nseries = 'x'\nreason = 'y'\ncommit = 'abc'", "reset number 1 has commit"),
    ],
)
def test_a_wrong_file_is_refused_in_a_sentence(tmp_path, text, says):
    path = tmp_path / "triage.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=says) as caught:
        load_triage(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("made", [lambda p: p.mkdir(), lambda p: p.write_bytes(b"\xff")])
def test_what_is_no_text_is_refused(tmp_path, made):
    path = tmp_path / "triage.toml"
    made(path)
    with pytest.raises(ValueError, match="cannot be read"):
        load_triage(path)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("triage") / "triage.toml"
    path.write_text(text, encoding="utf-8")
    said = ""
    try:
        apply([change()], load_triage(path), TODAY)
    except ValueError as error:
        said = str(error)
    assert "\n" not in said
