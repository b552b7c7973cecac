"""The site without a browser: what it says, that all of it is escaped, and what cannot be read."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from datetime import date, timedelta
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import (
    BENCHMARKS,
    FIRST_DAY,
    HOSTILE_MACHINE,
    HOSTILE_MESSAGE,
    HOSTILE_PARAMETER,
    SENTENCE,
    morning,
    plant,
)
from processes import HANG_SECONDS, HEARS_CTRL_C

from dashboards import script
from dashboards.content.commits import checked_address, commits, remote_address
from dashboards.content.grid import against, layout
from dashboards.content.machines import pairs
from dashboards.content.recent_changes import recent_changes, recent_steps
from dashboards.content.series import all_series
from dashboards.content.standing import standings
from dashboards.names import Names
from dashboards.pictures.sparkline import polyline
from dashboards.site import build_site
from harness.axes import Cell
from harness.cli.main import main
from harness.collector.result import GcState, ProcessResult
from harness.experiment.store import RunStore, trial_key
from harness.report.series_words import counts_sentence
from harness.tracking.changes import latest_changes
from harness.tracking.history import load_history
from harness.tracking.judge_figures import judge_all
from harness.tracking.triage import NOTHING_SAID
from harness.trial.spec import TrialFailure, TrialResult

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "results" / "published"


class Page(HTMLParser):
    """What of a page matters: its links, its elements, its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.ids: set[str] = set()
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.elements.append((tag, found))
        self.links += [found[name] for name in ("href", "src") if found.get(name)]
        self.ids |= {found["id"]} if "id" in found else set()

    def handle_endtag(self, tag):
        self.text += " " * (tag in ("td", "th", "p", "h1", "h2", "h3", "b", "a"))

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def site(small, tmp_path_factory):
    """Of everything there can be: asv's results, published ones, a raw trial."""
    results = tmp_path_factory.mktemp("results")
    shutil.copytree(small.results / "asv", results / "asv")
    shutil.copytree(PUBLISHED, results / "published")
    raw_trial(results / "runs")
    output = results / "site"
    built = build_site(results, output, repository=small.repository, now=morning(small))
    assert built.problems == []
    return output


def raw_trial(root: Path, name: str = "one", number: int = 0, gc: str = "default") -> RunStore:
    """A stored trial of three steps and three collections, one of them before the first step."""
    store = RunStore(root, name)
    cell = Cell(workload="small", device="modelled", representation="list_of_lists", gc=gc)
    if not number:
        store.create()
    key = trial_key(0, number, cell, "timing")
    state = GcState(enabled=True, thresholds=(700, 10, 10), freeze_count=0, tracked_objects=9)
    process = ProcessResult(
        role="engine",
        policy="default",
        state=state,
        collections=(1, 0, 1),
        collected=(0, 0, 0),
        pause_seconds=(0.0, 0.0, 0.0),
        max_pause_seconds=0.0,
        full_pass_seconds=0.0,
    )
    result = TrialResult(
        cell=cell,
        mode="timing",
        seed=0,
        metrics={"host_time_per_step": 2e-3},
        processes=[process],
        tokens_sha256="",
        finish_sha256="",
        interpreter="3.11.7",
        code_root="",
        code_commit="abc",
        wall_seconds=1.0,
    )
    ms = 1_000_000
    starts = np.array([0, 10, 20]) * ms + 5 * ms
    lengths = {"schedule": 1, "launch": 1, "wait": 2, "handoff": 1, "process": 1}
    columns = {"steps.start": starts, "steps.num_rows": np.array([4, 4, 4])}
    end = starts
    for phase, length in lengths.items():
        end = end + length * ms
        columns[f"steps.{phase}"] = end
    columns |= {
        "collections.generation": np.array([2, 0, 2], np.int8),
        "collections.start_ns": np.array([0, 6, 16]) * ms,
        "collections.duration_ns": np.array([1, 1, 3]) * ms,
        "collections.process": np.zeros(3, np.int8),
    }
    np.savez(store.rows_path(key), **columns)
    store.keep_rows(key)
    store.save_trial(key, result)
    return store


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


@pytest.fixture(scope="module")
def parsed(site):
    """Every page of `site`, by its path."""
    return {path: Page(path) for path in pages(site)}


@pytest.fixture(scope="module")
def judged_small(small):
    """All figures of the small history, and the verdicts on them."""
    figures = load_history(small.results).figures
    return figures, judged(figures)


@pytest.fixture(scope="module")
def one_trial(tmp_path_factory):
    """Results as small as there can be, where it matters only what becomes of the site."""
    return raw_trial(tmp_path_factory.mktemp("one") / "runs").folder.parent


@pytest.fixture(scope="module")
def two_commits(tmp_path_factory):
    """Asv's results of two commits."""
    return plant(tmp_path_factory.mktemp("two"), commits=2)


def value_of(path: Path):
    """What a data file assigns."""
    text = path.read_text()
    return json.loads(text[text.index("= ", text.index("]")) + 2 : text.rindex(";")])


def test_the_overview_says_what_changed_in_one_sentence(site, small):
    page = Page(site / "index.html")
    assert SENTENCE in page.text
    assert "Keep a note of each request until the step is over" in page.text
    words = " ".join(page.text.split()).partition("What changed, by commit")[2]
    new = words.index("▼ NEW Keep a note of each request until the step is over")
    assert new < words.index("▼ NEW Sort the hand-off by block") < words.index("▲ better")
    assert "+40.0 % 432 605" in words
    assert f"{small.hashes[-1][:8]} by Bo Example, 2026-01-08" in words
    assert f"{small.hashes[-2][:8]} → {small.hashes[-1][:8]}" in words
    assert f"gcbench gate {small.hashes[-2][:10]} {small.hashes[-1][:10]}" in words


def test_the_overview_says_how_old_and_how_noisy_the_figures_are(site):
    words = " ".join(Page(site / "index.html").text.split())
    when = "measured 27 hours before this page was built, 2026-01-09 06:00 UTC"
    assert f"box py3.11 {when} 60 series, all measured at its newest commit" in words
    assert re.search(r"noise ±[01]\.\d\d? % \(median timing\)", words)


def test_figures_that_are_old_are_said_to_be_once(small, tmp_path):
    late = morning(small) + timedelta(days=40)
    build_site(small.results, tmp_path / "site", repository=small.repository, now=late)
    text = (tmp_path / "site" / "index.html").read_text()
    assert text.count("41 days") == 1
    assert "Measure again before you act: the newest figures are 41 days old." in text


def judged(figures, today=date(2026, 1, 30)):
    return judge_all(figures, {}, NOTHING_SAID, today).verdicts


def test_it_says_by_date_when_was_measured(judged_small):
    figures, verdicts = judged_small
    assert recent_changes(verdicts, figures).sentence == SENTENCE


@pytest.mark.parametrize(
    ("number", "triaged", "sentence"),
    [
        ({"no_change_shown": 60}, 0, "60 with no change shown"),
        ({}, 0, ""),
        ({"worse": 1, "no_change_shown": 1200}, 0, "1 regression, 1,200 with no change shown"),
        (
            {"worse": 2, "inconclusive": 1, "same": 3},
            1,
            "2 regressions (1 of them triaged), 1 inconclusive, 3 the same",
        ),
        (
            {"better": 2, "changed": 1, "insufficient": 3, "suspicious": 4},
            0,
            "2 improvements, 1 changed either way, 4 suspicious, 3 with too few points",
        ),
    ],
)
def test_sentences(number, triaged, sentence):
    assert counts_sentence(number, triaged) == sentence


def test_series_not_measured_at_the_newest_commit_stand_as_last_measured(small, judged_small):
    figures, verdicts = judged_small
    last = figures["commit"] == small.hashes[-1]
    some = figures[~(last & figures["benchmark"].str.endswith("request_throughput"))]
    found = recent_changes(judged(some), some)
    (standing,) = standings(some, judged(some), morning(small))
    assert (standing.series, standing.stale) == (60, 20)
    whole = recent_changes(verdicts, figures)
    throughput = {change.key for change in whole.changes if "throughput" in change.key[2]}
    # It had two nights of its step left, which are no three.
    assert {change.key for change in whole.changes} - {change.key for change in found.changes} <= (
        throughput
    )
    first = figures[figures["commit"] == small.hashes[0]]
    said = recent_changes(judged(first), first).sentence
    assert "too few commits yet" in said


def test_every_link_leads_somewhere(site, parsed):
    for path, page in parsed.items():
        for link in page.links:
            parts = urlsplit(link)
            if link.startswith("https://github.com/vllm-project/vllm/pull/"):
                continue
            assert parts.scheme in ("", "data"), f"{path} links to {link}"
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), f"{path} links to {link}"
            assert target.is_relative_to(site.resolve())
            if parts.fragment and not re.match(r"[sk]=|[0-9a-f]{40}\.\.", parts.fragment):
                assert parts.fragment in parsed[target].ids, f"{path} links to {link}"


def test_every_kind_of_page_is_there_and_has_a_heading(site, parsed):
    names = {str(path.relative_to(site)).split("/")[0] for path in parsed}
    assert names == {
        "index.html",
        "metrics.html",
        "metric",
        "commits.html",
        "commit",
        "compare.html",
        "experiments.html",
        "experiment",
        "heatmap.html",
        "timelines.html",
        "timeline",
        "releases.html",
        "machines.html",
    }
    for path, page in parsed.items():
        tags = [tag for tag, _ in page.elements]
        assert tags.count("h1") == tags.count("main") == 1, path
        assert "lang" in dict(page.elements)["html"]


def test_whatever_comes_from_results_is_escaped(hostile, tmp_path):
    output = tmp_path / "site"
    built = build_site(
        hostile.results,
        output,
        repository=hostile.repository,
        now=morning(hostile),
        commit_url="https://example.org/commit/",
    )
    assert "1 regression" in built.sentence
    seen = ""
    for path in pages(output):
        page = Page(path)
        seen += page.text
        for tag, attributes in page.elements:
            assert tag != "img", path
            assert tag != "script" or attributes.get("src"), path
            assert not [name for name in attributes if name.startswith("on")], path
    for words in (HOSTILE_MESSAGE, HOSTILE_MACHINE, HOSTILE_PARAMETER):
        assert words in seen
    for path in output.rglob("*.js"):
        if "assets" not in path.parts:
            assert not set("<>&") & set(path.read_text()), path
    for path in output.rglob("*"):
        assert re.fullmatch(r"[\w.-]+", path.name)


def test_a_file_that_is_cut_short_is_a_line_and_the_rest_goes_on(asv, tmp_path, capsys):
    folder = asv / "asv" / "box"
    spoilt, infinite = sorted(path for path in folder.iterdir() if path.name != "machine.json")[:2]
    spoilt.write_text(spoilt.read_text()[:100])
    text = infinite.read_text()
    infinite.write_text(re.sub(r'(gen0": \[\[)\d+, \d+', r"\1NaN, -Infinity", text))
    shutil.copytree(PUBLISHED, asv / "published")
    (asv / "published" / "main-job.json").write_text('{"schema": "gcbench.result/1", "na')
    store = raw_trial(asv)
    rows = next(store.folder.glob("rows/*-steps.parquet"))
    rows.write_bytes(rows.read_bytes()[:40])
    assert main(["dashboard", str(asv), "--output", str(tmp_path / "site")]) == 0
    said = capsys.readouterr()
    lines = said.err.splitlines()
    assert all(line.startswith("gcbench: ") for line in lines)
    for name in (spoilt.name, infinite.name, "main-job.json", rows.name):
        assert sum(name in line for line in lines) == 1, said.err
    assert len(lines) == 4
    page = Page(tmp_path / "site" / "machines.html")
    assert spoilt.name in page.text
    assert "4 things could not be read" in Page(tmp_path / "site" / "index.html").text
    assert (tmp_path / "site" / "releases.html").is_file()
    assert not (tmp_path / "site" / "timelines.html").exists()


def test_the_page_of_machines_has_the_nodes_of_a_cluster(tmp_path):
    result = json.loads((PUBLISHED / "main-job.json").read_text())
    for name, nodes in (("first", {"n0": 4, "n1": 3}), ("second", {"n1": 7})):
        text = json.dumps(result | {"name": name, "nodes": nodes})
        (tmp_path / f"{name}.json").write_text(text)
    build_site(tmp_path, tmp_path / "site")
    assert "n0 4 blocks, n1 10 blocks" in Page(tmp_path / "site" / "machines.html").text
    assert "n0 4, n1 3" in Page(tmp_path / "site" / "experiment" / "first.html").text


def test_an_experiment_that_lacks_trials_is_marked_with_figures_and_without(tmp_path):
    runs = tmp_path / "runs"
    store = raw_trial(runs)
    store.mark_incomplete()
    empty = RunStore(runs, "just-begun")
    empty.create()
    empty.mark_incomplete()
    build_site(runs, tmp_path / "site", most_timelines=0)
    heat_map = " ".join(Page(tmp_path / "site" / "heatmap.html").text.split())
    overview = " ".join(Page(tmp_path / "site" / "index.html").text.split())
    for name in (store.name, "just-begun"):
        assert f"{name} (incomplete)" in heat_map
        assert name in overview.partition("Incomplete, interrupted before")[2]
    assert "list_of_lists per_request 2.00 ms baseline" in heat_map
    for each in (store, empty):
        each.mark_complete()
    build_site(runs, tmp_path / "site", most_timelines=0)
    assert "ncomplete" not in (tmp_path / "site" / "heatmap.html").read_text()


def test_published_results_alone_make_a_site(tmp_path):
    built = build_site(PUBLISHED, tmp_path / "site")
    assert built.problems == []
    overview = " ".join(Page(tmp_path / "site" / "index.html").text.split())
    assert "No commits have been measured" in overview
    assert "19 experiments, and no nights yet" in overview
    growth = "vLLM 0.33.0 takes the host 61.9 % more time per step (95 %: +59.7 to +64.2 %)"
    assert growth in overview
    assert "Best: flat_arrays · columnar · freeze, request throughput +80.0 %" in overview
    words = " ".join(Page(tmp_path / "site" / "releases.html").text.split())
    assert re.search(r"0\.11\.0 222 req/s baseline 252 req/s \+13\.6 % ▲", words)
    assert (
        "0.11.0 2025-10-04 as_is – 14.1 µs 2,927/266/4 4,965 0.573 507,803 0.0 % 24.5 % 260 ms"
        in words
    )
    assert words.index(growth) < words.index("no exact count of the collector"), "growth leads"
    assert not (tmp_path / "site" / "compare.html").exists()


def test_nothing_readable_is_a_usage_error_and_writes_nothing(tmp_path, capsys):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("years of work")
    for place in ("other", "none"):
        status = main(["dashboard", str(tmp_path / place), "--output", str(tmp_path / "site")])
        assert status == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other"]


def test_the_first_visit_is_told_what_to_do(tmp_path, capsys):
    results = tmp_path / "results" / "published"
    results.mkdir(parents=True)
    (results / "README.md").write_text("what is worth keeping")
    output = tmp_path / "site"
    assert main(["dashboard", str(results.parent), "--output", str(output)]) == 0
    assert "No commits have been measured here yet." in capsys.readouterr().out
    words = " ".join(Page(output / "index.html").text.split())
    for command in ("gcbench compare", "gcbench nightly", "gcbench dashboard"):
        assert command in words


def test_a_folder_that_is_no_dashboard_is_left_as_it_is(one_trial, tmp_path, capsys):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    file = tmp_path / "file"
    file.write_text("x")
    for target in (mine, file, file / "below", Path("/proc/gcbench-site")):
        status = main(["dashboard", str(one_trial), "--output", str(target)])
        said = capsys.readouterr().err
        assert status == 2, target
        assert said.count("\n") == 1
        assert "--output DIR" in said
    assert (mine / "thesis.txt").read_text() == "years of work"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mine"]


def test_a_dashboard_is_replaced_whole(one_trial, tmp_path):
    output = tmp_path / "site"
    build_site(one_trial, output)
    (output / "old.html").write_text("of the build before")
    build_site(one_trial, output)
    assert not (output / "old.html").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_full_disk_leaves_the_dashboard_of_before(small, one_trial, tmp_path, no_file_above):
    output = tmp_path / "site"
    build_site(one_trial, output)
    before = (output / "index.html").read_bytes()
    with no_file_above(30_000):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "harness",
                "dashboard",
                str(small.results),
                "--output",
                str(output),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cannot be written" in done.stderr
    assert (output / "index.html").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_timeline_holds_the_steps_and_the_collections_in_them(site):
    data = value_of(next((site / "data" / "timeline").iterdir()))
    assert data["start"] == [0, 10, 20]
    assert data["length"] == [6, 6, 6]
    assert data["phases"] == {
        "schedule": [1] * 3,
        "launch": [1] * 3,
        "wait": [2] * 3,
        "handoff": [1] * 3,
        "process": [1] * 3,
    }
    # The one before the first step is not the window's.
    assert data["collections"]["generation"] == [0, 2]
    assert data["collections"]["start"] == [1, 11]
    page = " ".join(Page(next((site / "timeline").iterdir())).text.split())
    assert "3 steps in 26.0 ms, the median one 6.00 ms. 2 collections (1/0/1 of" in page
    assert "took 4.00 ms, 15.4 % of the time; the longest 3.00 ms" in page
    assert "1 4 6.00 ms 0/0/1, 3.00 ms" in page


def test_of_an_experiment_without_a_summary_medians_are_shown(tmp_path):
    store = raw_trial(tmp_path / "runs")
    failure = TrialFailure(
        cell=Cell(workload="b", device="modelled"),
        mode="timing",
        seed=0,
        kind="crashed",
        reason="it fell over",
    )
    store.save_trial(trial_key(0, 1, failure.cell, "timing"), failure)
    build_site(tmp_path / "runs", tmp_path / "site", most_timelines=0)
    words = " ".join(Page(tmp_path / "site" / "heatmap.html").text.split())
    assert "list_of_lists per_request 2.00 ms baseline" in words
    assert "ncomplete" not in words, "the trials of a gate have no summary and lack nothing"
    assert not (tmp_path / "site" / "timelines.html").exists()


def test_changes_are_marked_where_they_were_planted(tmp_path, site, small):
    planted = plant(tmp_path, commits=100)
    read = load_history(planted.results)
    figures = read.figures
    found = recent_steps(judged(figures))
    series = all_series(figures, read.parameters, commits(figures, {}, ""))
    for benchmark in BENCHMARKS:
        rows = [each for each in series if benchmark.name.endswith(each.metric)]
        marked = {
            (place, len(planted.hashes) - planted.hashes.index(step.first_after), step.verdict)
            for place, each in enumerate(rows)
            for step in found[each.key]
        }
        expected = set()
        for point, from_end, factor in benchmark.planted:
            is_good = (factor > 1) == (benchmark.direction == "higher")
            is_certain = benchmark.kind == "exact" or from_end >= 3
            verdict = ("better" if is_good else "worse") if is_certain else "suspicious"
            expected |= {(point, from_end, verdict)} if from_end <= 100 else set()
        chance = {mark for mark in marked - expected if mark[2] == "suspicious" and mark[1] < 15}
        assert marked - chance == expected, benchmark.name
    small_read = load_history(small.results)
    small_series = all_series(
        small_read.figures, small_read.parameters, commits(small_read.figures, {}, "")
    )
    data = value_of(site / "data" / "metric" / f"{small_series[0].page}.js")
    assert data["series"][2]["marks"] == [[7, "worse", pytest.approx(1.4, rel=1e-3), ""]]


def test_data_of_a_commit_is_what_the_frame_has(site, small, judged_small):
    figures, verdicts = judged_small
    table = latest_changes(figures, verdicts).set_index("series")
    rows = value_of(
        next(
            path
            for path in (site / "data" / "commit").iterdir()
            if path.stem == small.hashes[-1][:12]
        )
    )
    series = value_of(site / "data" / "series.js")
    assert len(rows) == len(series) == 60
    for number, (value, _, *ends), before_commit, (before, *_), word, _ in rows:
        row = table.iloc[number]
        assert (value, before, word) == (row["after"], row["before"], row["verdict"])
        assert not ends or ends[0] < value < ends[1]
        assert before_commit == len(small.hashes) - 2
        assert series[number][0].endswith(row["metric"])


def test_commits_have_addresses_of_known_forges_only(small, tmp_path):
    repository = tmp_path / "repository"
    shutil.copytree(small.repository, repository)
    git = ["git", "-C", str(repository), "remote"]
    assert remote_address(repository) == ""
    subprocess.run([*git, "add", "origin", "git@github.com:a/b.git"], check=True)
    assert remote_address(repository) == "https://github.com/a/b/commit/"
    subprocess.run([*git, "set-url", "origin", "https://gitlab.com/a/b/c"], check=True)
    assert remote_address(repository) == "https://gitlab.com/a/b/c/-/commit/"
    subprocess.run([*git, "set-url", "origin", "https://user:secret@example.org/a"], check=True)
    assert remote_address(repository) == ""
    with pytest.raises(ValueError, match="is no address"):
        checked_address("javascript:alert(1)//")
    assert main(["dashboard", "results", "--output", "x", "--commit-url", "ftp://a"]) == 2


def test_hashes_that_are_none_are_no_options_of_git(asv, tmp_path):
    place = asv / "asv" / "box"
    path = next(path for path in place.iterdir() if path.name != "machine.json")
    content = json.loads(path.read_text())
    content["commit_hash"] = f"--output={tmp_path / 'written'}"
    path.write_text(json.dumps(content))
    build_site(asv, tmp_path / "site", repository=ROOT)
    assert not (tmp_path / "written").exists()


def test_a_repository_that_is_none_is_a_line(two_commits, tmp_path, capsys):
    places = ["--output", str(tmp_path / "site"), "--repo", str(tmp_path / "none")]
    assert main(["dashboard", str(two_commits.results), *places]) == 0
    assert "shown without their messages" in capsys.readouterr().err


@given(st.lists(st.text(max_size=30), unique=True, max_size=30))
def test_names_are_safe_and_each_of_one_thing(texts):
    names = Names()
    made = [names.of(text) for text in texts]
    assert len(set(made)) == len(texts)
    assert all(re.fullmatch(r"[a-z0-9_][a-z0-9_.-]*", name) for name in made)
    assert [names.of(text) for text in texts] == made


@given(st.lists(st.one_of(st.none(), st.floats(-1e300, 1e300)), max_size=80))
def test_sparklines_stay_in_their_box(values):
    for point in polyline(values, 0.02).split():
        x, y = map(float, point.split(","))
        assert 0 <= x <= 100
        assert 0 <= y <= 24


@given(st.recursive(st.one_of(st.text(), st.integers(), st.none()), st.lists))
def test_scripts_hold_what_they_were_given_and_no_markup(value):
    text = script.assigned("it", value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text[text.index("= ", text.index('"it"]')) + 2 : text.rindex(";")]) == value


def test_no_script_holds_nan():
    with pytest.raises(ValueError, match="JSON"):
        script.assigned("it", float("nan"))


def test_grids_put_the_policy_across_and_shade_by_direction():
    from dashboards.content.grid import GridCell

    cells = [
        ({"shape": shape, "gc": gc}, GridCell(f"{shape}{gc}"))
        for shape, gc in (("a", "x"), ("b", "y"), ("a", "y"))
    ]
    grid = layout(cells)
    assert (grid.axes, grid.columns) == (["shape"], ["x", "y"])
    assert [[cell and cell.text for cell in row] for _, row in grid.rows] == [
        ["ax", "ay"],
        [None, "by"],
    ]
    assert against(1.05, 1.0, "higher") == ("+5.0 %", 1)
    assert against(1.05, 1.0, "lower") == ("+5.0 %", -1)
    assert against(4.0, 1.0, "neither") == ("+300.0 %", 0)
    assert against(1.01, 1.0, "lower") == ("+1.0 %", 0)
    assert against(-1.0, 1.0, "lower") == against(None, 1.0, "lower") == ("", 0)


@pytest.mark.slow
def test_serving_listens_on_this_machine_until_interrupted(small):
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "dashboard", str(small.results), "--port", "0"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        **HEARS_CTRL_C,
    )
    try:
        assert "regressions" in process.stdout.readline()
        address = process.stdout.readline().split()[0]
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address)
        with urllib.request.urlopen(address, timeout=HANG_SECONDS) as answer:
            assert b"<h1>" in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_SECONDS) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_port_that_is_taken_is_one_sentence(small, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main(["dashboard", str(small.results), "--port", port]) == 2
    said = capsys.readouterr()
    assert "--port" in said.err
    assert said.err.count("\n") == 1


def test_the_planted_history_is_the_same_every_time(small, tmp_path):
    again = plant(tmp_path, commits=8)
    assert again.hashes == small.hashes
    assert again.last_day == FIRST_DAY + 7
    one, other = (sorted(p.results.rglob("*.json")) for p in (small, again))
    assert [a.read_text() for a in one] == [b.read_text() for b in other]


def test_results_that_real_asv_wrote_for_another_project(tmp_path):
    """Two machines, two environments, failures, benchmarks without a direction."""
    built = build_site(ROOT / "tests" / "golden" / "asv", tmp_path / "site")
    assert len(built.problems) == 8
    words = Page(tmp_path / "site" / "index.html").text
    assert "2 regressions" in words
    assert "box-a, virtualenv-py3.11-TOY0" in words
    described = Page(tmp_path / "site" / "machines.html").text
    assert "a processor" in described
    assert "suite.track_endless is inf" in described


@pytest.mark.parametrize(
    ("ram", "said"),
    [("16416652", "15.7 GiB"), ("17179869184", "16.0 GiB"), ("16GB", "16GB"), (2**34, "16.0 GiB")],
)
def test_the_memory_that_asv_knows_has_a_unit(ram, said):
    assert pairs({"machine": "box", "ram": ram}) == [("memory", said)]
