"""``gcbench nightly`` over planted nights: the newest commit is measured, so it only judges."""

import json
import math
import re
from datetime import date, timedelta

import pytest
from planted_nights import EXACT, TIMING, Nights, git, noisy, with_params

from harness.format import one_of

pytest.importorskip("asv")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()


def stepped(nights: Nights, place: int, exact: int = 130, timing: float = 1.2) -> None:
    """All three series of ``nights`` change at a commit."""
    count = len(nights.hashes)
    nights.plant(
        [
            (EXACT, [[100, 0]] * place + [[exact, 0]] * (count - place)),
            (TIMING, noisy([1e-3] * place + [1e-3 * timing] * (count - place))),
        ]
    )


@pytest.fixture
def regressed(tmp_path) -> Nights:
    nights = Nights(tmp_path / "toy", 20)
    stepped(nights, 16)
    return nights


def test_keys_of_a_newer_asv_end_no_night(regressed, capsys):
    """In its configuration, its results and its list of benchmarks; they are ignored and said."""
    before = regressed.end(capsys).result.alerts
    path = regressed.folder / "asv.conf.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"benchmark_shards": 4}))
    for result in regressed.paths:
        content = json.loads(result.read_text())
        columns = [*content["result_columns"], "energy"]
        rows = {
            name: row + [None] * (len(columns) - 1 - len(row)) + [[1.0]]
            for name, row in content["results"].items()
        }
        newer = {"result_columns": columns, "results": rows, "host": {"cores": 4}}
        result.write_text(json.dumps(content | newer))
    path = regressed.results / "benchmarks.json"
    described = json.loads(path.read_text())
    for name, entry in described.items():
        described[name] = entry | {"shard": 3} if isinstance(entry, dict) else entry
    path.write_text(json.dumps(described))
    ended = regressed.end(capsys)
    assert ended.status == 1
    assert ended.result.alerts == before
    (note,) = (note for note in ended.result.notes if "benchmark_shards" in note)
    assert "gcbench ignores it" in note


def test_one_alert_for_a_commit_says_all_there_is_to_know(regressed, capsys):
    before, after = regressed.hashes[15], regressed.hashes[16]
    with_params(regressed.paths[15], os="Linux 6.1", numpy="2.1")
    with_params(regressed.paths[16], os="Linux 6.12", numpy="2.1")
    ended = regressed.end(capsys)
    assert ended.status == 1
    (alert,) = ended.result.alerts
    assert (alert.commit, alert.last_before, alert.subject) == (after, before, "Change 16")
    assert [each.commit for each in alert.plausible] == [after]
    assert alert.environment == ["os Linux 6.1 → Linux 6.12"]
    assert alert.command == [
        "asv --config asv.conf.json continuous --record-samples --bench "
        f"'^(suite.track_gen0|suite.track_itl)\\b' {before[:10]} {after[:10]}"
    ]
    told = {each.series: each for each in alert.changes}
    assert set(told) == {"suite.track_gen0('default')", "suite.track_itl"}
    exact, timing = told["suite.track_gen0('default')"], told["suite.track_itl"]
    assert (exact.before, exact.after, exact.ratio, exact.kind) == (100, 130, 1.3, "exact")
    assert (timing.unit, timing.certainty, timing.status) == ("s", "found", "open")
    low, high = timing.ci95
    assert low < 1.2 < high
    assert ended.result.verdicts == {"worse": 2, "no_change_shown": 1}
    assert ended.result.measured == []
    for words in (after[:10], before[:10], "Linux 6.12", "asv --config"):
        assert words in ended.markdown
    assert (regressed.output / "site" / "index.html").is_file()


def test_an_exact_change_anchors_a_timing_that_is_not_sure_of_its_commit(tmp_path, capsys):
    nights = Nights(tmp_path / "toy", 20)
    halfway = noisy([1.0] * 15 + [1.09] + [1.15] * 4, noise=0.02)
    nights.plant([(TIMING, halfway)])
    (alone,) = nights.end(capsys, "--reruns", "0").result.alerts
    at = nights.hashes.index(alone.commit)
    assert len(alone.plausible) > 1
    (other, *_) = {nights.hashes.index(each.commit) for each in alone.plausible} - {at}
    nights.plant([(TIMING, halfway), (EXACT, [[100, 0]] * other + [[200, 0]] * (20 - other))])
    (both,) = nights.end(capsys).result.alerts
    assert both.commit == nights.hashes[other]
    assert [each.commit for each in both.plausible] == [both.commit]
    assert {each.metric for each in both.changes} == {"gen0", "itl"}


def test_a_timing_that_is_not_sure_of_its_commit_names_all_that_it_may_be(tmp_path, capsys):
    nights = Nights(tmp_path / "toy", 20)
    nights.plant([(TIMING, noisy([1.0] * 15 + [1.09] + [1.15] * 4, noise=0.02))])
    ended = nights.end(capsys, "--reruns", "0")
    (alert,) = ended.result.alerts
    suspects = [each.commit for each in alert.plausible]
    first, last = (nights.hashes.index(suspects[end]) for end in (0, -1))
    assert suspects == nights.hashes[first : last + 1]
    assert len(suspects) > 1
    assert alert.commit in suspects
    assert alert.last_before == nights.hashes[first - 1]
    whole, part = (command.split()[-2:] for command in alert.command)
    assert whole == [alert.last_before[:10], suspects[-1][:10]]
    assert part != whole
    headline = ended.markdown.splitlines()[0]
    assert suspects[0][:10] in headline
    assert suspects[-1][:10] in headline
    assert ended.result.notes == ["Waiting for a re-run (--reruns N): 1 more."]
    page = (nights.output / "site" / "index.html").read_text()
    (cell,) = re.findall(r'<td class="nowrap between">(.*?)</td>', page, re.DOTALL)
    words = " ".join(re.sub(r"<.*?>", " ", cell).split())
    said = one_of(suspects, 8)
    assert words.startswith(f"{alert.last_before[:8]} → {said}"), words


def test_changes_far_apart_are_alerts_of_their_own_the_newest_first(tmp_path, capsys):
    nights = Nights(tmp_path / "toy", 20)
    nights.plant(
        [(EXACT, [[100, 0]] * 14 + [[130, 0]] * 6), (TIMING, noisy([1.0] * 17 + [0.7] * 3))]
    )
    ended = nights.end(capsys)
    assert [each.commit for each in ended.result.alerts] == [nights.hashes[17], nights.hashes[14]]
    assert [each.is_regression for each in ended.result.alerts] == [False, True]
    assert ended.status == 1


def test_an_alert_is_no_news_after_a_week_of_points(tmp_path, capsys):
    nights = Nights(tmp_path / "toy", 20)
    for place, status in ((13, 1), (12, 0)):
        nights.plant([(EXACT, [[100, 0]] * place + [[130, 0]] * (20 - place))])
        assert nights.end(capsys).status == status


def test_an_improvement_is_told_and_no_failure(tmp_path, capsys):
    nights = Nights(tmp_path / "toy", 20)
    stepped(nights, 16, exact=70, timing=0.8)
    ended = nights.end(capsys)
    assert ended.status == 0
    (alert,) = ended.result.alerts
    assert {each.verdict for each in alert.changes} == {"better"}


def test_the_same_every_night_is_zero(tmp_path, capsys):
    nights = Nights(tmp_path / "toy", 20)
    stepped(nights, 20)
    ended = nights.end(capsys)
    assert (ended.status, ended.result.alerts, ended.result.missing) == (0, [], [])
    assert ended.result.verdicts == {"no_change_shown": 3}


def test_too_few_points_are_no_success(tmp_path, capsys):
    nights = Nights(tmp_path / "toy", 7)
    nights.plant([(TIMING, noisy([1.0] * 7))])
    ended = nights.end(capsys)
    assert ended.status == 3
    assert ended.result.verdicts == {"insufficient": 1}
    assert "too few points" in ended.markdown


def test_a_jump_of_one_night_is_suspicious_and_no_alert(tmp_path, capsys):
    nights = Nights(tmp_path / "toy", 20)
    nights.plant([(TIMING, noisy([1.0] * 19 + [1.3])), (EXACT, [[100, 0]] * 20)])
    ended = nights.end(capsys, "--reruns", "0")
    assert (ended.status, ended.result.alerts) == (0, [])
    (each,) = ended.result.suspicious
    assert (each.series, each.certainty, each.verdict) == ("suite.track_itl", "suspected", "worse")
    assert "Suspicious" in ended.markdown
    (note,) = ended.result.notes
    assert note.endswith("1 more.")
    assert "--reruns N" in note


TODAY = date.today()
SAID = {
    "acknowledged": '[[acknowledged]]\nmetric = "*"\ncommit = "{commit}"\nreason = "issue 12"\n',
    "expected": '[[expected]]\nmetric = "*"\ncommit = "{commit}"\nreason = "issue 12"\n',
    "ignored": '[[ignored]]\nmetric = "*"\nuntil = {later}\nreason = "issue 12"\n',
}


@pytest.mark.parametrize("status", SAID)
def test_what_a_team_has_said_of_a_change_ends_the_alarm(regressed, capsys, status):
    (regressed.folder / "triage.toml").write_text(
        SAID[status].format(commit=regressed.hashes[16][:10], later=TODAY + timedelta(3))
    )
    ended = regressed.end(capsys)
    assert ended.status == 0
    (alert,) = ended.result.alerts
    assert {(each.status, each.reason) for each in alert.changes} == {(status, "issue 12")}
    assert f"{status}: issue 12" in ended.markdown
    assert "not a new regression" in ended.markdown


def test_half_of_an_alert_acknowledged_leaves_it_open(regressed, capsys):
    (regressed.folder / "triage.toml").write_text(
        f'[[expected]]\nmetric = "itl"\ncommit = "{regressed.hashes[16][:8]}"\nreason = "meant"\n'
    )
    ended = regressed.end(capsys)
    assert ended.status == 1
    assert {each.metric: each.status for each in ended.result.alerts[0].changes} == {
        "gen0": "open",
        "itl": "expected",
    }


def test_an_entry_that_has_run_out_is_named_and_counts_no_more(regressed, capsys, tmp_path):
    path = tmp_path / "elsewhere.toml"
    path.write_text(SAID["ignored"].format(later=TODAY - timedelta(3)))
    ended = regressed.end(capsys, "--triage", str(path))
    assert ended.status == 1
    assert f"no longer ignored until {TODAY - timedelta(3)}: issue 12" in ended.markdown


def test_a_reset_begins_a_level_without_a_word(regressed, capsys):
    (regressed.folder / "triage.toml").write_text(
        f'[[reset]]\nmetric = "*"\ncommit = "{regressed.hashes[16][:8]}"\nreason = "new runner"\n'
    )
    ended = regressed.end(capsys)
    assert (ended.status, ended.result.alerts) == (0, [])
    assert ended.result.verdicts == {"no_change_shown": 3}


def test_nan_and_infinity_are_left_out_with_a_word(tmp_path, capsys):
    nights = Nights(tmp_path / "toy", 20)
    values = noisy([1.0] * 20)
    values[5], values[11], values[19] = math.nan, math.inf, None
    zeros = [[0, 0]] * 17 + [[0, 9]] * 3
    nights.plant([(TIMING, values), (EXACT, zeros)])
    ended = nights.end(capsys)
    assert ended.status == 1
    (problem,) = ended.result.problems
    assert "suite.track_itl is inf, which is no figure" in problem
    (alert,) = ended.result.alerts
    (change,) = alert.changes
    assert (change.before, change.after, change.ratio, change.ci95) == (0, 9, None, None)
    assert ended.result.verdicts == {"no_change_shown": 2, "worse": 1}


def test_a_file_cut_short_is_put_aside_and_said(regressed, capsys, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "harness.tracking.nightly.run_asv.Asv.measure",
        lambda self, commit, target, *, bench="": asked.append(commit) or "the network is away",
    )
    cut = regressed.paths[8]
    text = cut.read_text()
    cut.write_text(text[: len(text) // 2])
    ended = regressed.end(capsys)
    aside = cut.with_name(f"{cut.name}.unreadable")
    assert aside.read_text() == text[: len(text) // 2]
    assert asked == [regressed.hashes[8]]
    assert ended.status == 1  # the rest is judged all the same
    assert any("is cut short" in note and aside.name in note for note in ended.result.notes)
    assert [each.reason for each in ended.result.measured] == ["the network is away"]
    assert f"{asked[0][:10]} Change 8: the network is away" in ended.markdown
    regressed.end(capsys)
    assert asked == [regressed.hashes[8]] * 2, "what failed once is not forgotten"


def test_a_rewritten_history_is_kept_and_not_looked_at(regressed, capsys):
    git(regressed.folder, "update-ref", "refs/heads/main", regressed.hashes[15])
    ended = regressed.end(capsys)
    assert (ended.status, ended.result.alerts) == (0, [])
    (note,) = ended.result.notes
    assert "No longer in the history of main" in note
    assert "4 measured commits" in note
    assert len(list((regressed.results / "box").glob("*-py3.11.json"))) == 20


HOSTILE = "<script>alert(1)</script> <b>[x](http://evil.invalid)</b> @team `a` | b"


def test_html_of_a_commit_and_a_machine_stays_text(tmp_path, capsys):
    from markdown_it import MarkdownIt

    machine = "<img src=x onerror=alert(2)>"
    nights = Nights(tmp_path / "toy", 20, {16: HOSTILE})
    values = [(EXACT, [[100, 0]] * 16 + [[130, 0]] * 4), (TIMING, noisy([1.0] * 19 + [1.3]))]
    nights.plant(values, machine)
    ended = nights.end(capsys, "--reruns", "0", machine=machine)
    assert ended.status == 1
    (alert,) = ended.result.alerts
    assert (alert.subject, alert.changes[0].machine) == (HOSTILE, machine)
    parsed = MarkdownIt("commonmark", {"html": True}).enable("table").parse(ended.markdown)
    tokens = [inner for token in parsed for inner in (token, *(token.children or []))]
    assert not {token.type for token in tokens} & {"html_inline", "link_open"}
    ours = {"<details><summary>All figures</summary>\n", "</details>\n"}
    assert {token.content for token in tokens if token.type == "html_block"} == ours
    (picture,) = (token for token in tokens if token.type == "image")
    assert picture.attrs["src"] == "night.png"
    pages = [path.read_text() for path in (nights.output / "site").rglob("*.html")]
    assert pages
    assert not any("<script>alert(1)" in page or "<img src=x" in page for page in pages)


def test_a_message_that_is_no_utf_8_is_told_all_the_same(tmp_path, capsys):
    nights = Nights(tmp_path / "toy", 20, {16: "Gr\udcfc\udcdfe"})
    stepped(nights, 16)
    ended = nights.end(capsys)
    assert ended.status == 1
    assert ended.result.alerts[0].subject == "Gr��e"


def test_an_alert_keeps_the_series_around_its_step(tmp_path, capsys):
    nights = Nights(tmp_path / "toy", 40)
    timing = noisy([1e-3] * 36 + [1.09e-3] * 4, 0.012)
    nights.plant([(EXACT, [[100, 0]] * 35 + [[80, 0]] * 5), (TIMING, timing)])
    ended = nights.end(capsys, "--reruns", "0")
    found = {alert.changes[0].kind: alert for alert in ended.result.alerts}
    exact, timed = found["exact"].around, found["timing"].around
    assert [point.value for point in exact] == [100] * 20 + [80] * 5
    assert [point.side for point in exact] == ["before"] * 20 + ["after"] * 5
    assert [point.commit for point in exact] == nights.hashes[15:]
    suspects = [each.commit for each in found["timing"].plausible]
    assert len(suspects) > 1, "a timing may be the doing of several commits"
    assert [point.commit for point in timed if point.side == "open"] == suspects[:-1]
    assert next(point.commit for point in timed if point.side == "after") == suspects[-1]
    assert timed[-1].value == pytest.approx(timing[-1])
    assert "around" in ended.markdown


def test_a_night_without_a_step_keeps_no_picture(tmp_path, capsys):
    nights = Nights(tmp_path / "toy", 20)
    stepped(nights, 16)
    assert nights.end(capsys).status == 1
    assert (nights.output / "night.png").exists()
    nights.clear()
    (nights.output / "night.png").parent.mkdir()
    (nights.output / "night.png").write_bytes(b"of the night before")
    nights.plant([(EXACT, [[100, 0]] * 20)])
    picture = tmp_path / "wanted.png"
    ended = nights.end(capsys, "--image", str(picture))
    assert ended.status == 0
    assert not (nights.output / "night.png").exists()
    assert not picture.exists()
    assert "not written, for there is nothing to draw" in ended.said
    assert "![" not in ended.markdown


def test_json_and_markdown_go_where_they_are_asked_for(regressed, capsys, tmp_path):
    status = regressed.run(
        "--json",
        "-",
        "--export",
        f"markdown={tmp_path / 'n.md'}",
        "--image",
        str(tmp_path / "a b.svg"),
    )
    out = capsys.readouterr().out
    assert status == 1
    assert json.loads(out) == json.loads((regressed.output / "result.json").read_text())
    assert json.loads(out)["schema"] == "gcbench.result/1"
    kept = (regressed.output / "night.md").read_text()
    assert "](night.png)\n" in kept
    assert (tmp_path / "n.md").read_text() == kept.replace("(night.png)", "(a%20b.svg)")
    assert (regressed.output / "night.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "a b.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--commits", "no-such"), ["no-such"]),
        (("--commits", "HEAD..HEAD"), ["--commits HEAD..HEAD", "no commit"]),
        (("--bench", "("), ["--bench (", "regular expression"]),
        (("--triage", "nowhere.toml"), ["--triage nowhere.toml: does not exist"]),
        (("--results", "nowhere"), ["--results nowhere: does not exist"]),
        (("--machine", "a/b"), ["--machine a/b", "plain name"]),
    ],
)
def test_wrong_usage_is_a_sentence(regressed, capsys, arguments, words):
    assert regressed.run(*arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("gcbench: ")
    assert said.count("\n") == 1
    for word in words:
        assert word in said


def test_nothing_to_judge_is_no_success(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        "harness.tracking.nightly.run_asv.Asv.measure", lambda *_, **__: "no compiler"
    )
    nights = Nights(tmp_path / "toy", 2)
    ended = nights.end(capsys)
    assert ended.status == 3
    assert [(each.commit, each.reason) for each in ended.result.measured] == [
        (nights.hashes[1], "no compiler")
    ]
    assert any("results" in sentence for sentence in ended.result.missing)
