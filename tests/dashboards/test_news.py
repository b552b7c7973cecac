"""What there is to act on, by commit: how it stands, and what the triage file makes of it."""

import re
from datetime import date, timedelta

import pandas as pd
import pytest
from planted import MESSAGES, plant
from test_site import Page

from dashboards.content.morning import advice
from dashboards.content.news import items
from dashboards.content.recent_changes import RecentChanges, marks_by_commit
from dashboards.site import build_site
from harness.tracking.history import load_history
from harness.tracking.judge_figures import judge_all
from harness.tracking.triage import NOTHING_SAID, load_triage

TODAY = date(2026, 2, 10)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return plant(tmp_path_factory.mktemp("news"), commits=12)


def judged(planted, figures=None, triage=NOTHING_SAID, *, is_old=False):
    """The items of these figures, and the verdicts behind them."""
    figures = load_history(planted.results).figures if figures is None else figures
    verdicts = judge_all(figures, {}, triage, TODAY).verdicts
    order = {commit: n for n, commit in enumerate(planted.hashes)}
    return items(verdicts, order, is_old=is_old), verdicts


def test_what_the_newest_commits_broke_is_new_and_each_commit_stands_once(planted):
    found, _ = judged(planted)
    assert [(each.kind, each.commit) for each in found] == [
        ("new", planted.hashes[-1]),
        ("new", planted.hashes[-3]),
    ]
    count, time = found
    assert [change.metric for change in count.changes] == ["gc_collections_gen0"]
    assert [change.verdict for change in time.changes] == ["worse", "better"]
    assert "gc_collections" in count.acknowledge
    assert "throughput" not in time.acknowledge, "an improvement needs no acknowledgement"


def test_a_regression_that_stood_there_before_is_open(planted):
    figures = load_history(planted.results).figures
    last = figures[figures["commit"] == planted.hashes[-1]]
    later = last.assign(commit="f" * 40, date=last["date"] + timedelta(days=1))
    more = pd.concat([figures, later.astype({"commit": "category"})], ignore_index=True)
    found, _ = judged(planted, more)
    kinds = {each.commit: (each.kind, each.changes[0].ago) for each in found}
    assert kinds[planted.hashes[-1]] == ("open", 1)


def test_nothing_is_new_in_old_figures(planted):
    found, _ = judged(planted, is_old=True)
    assert [each.kind for each in found] == ["open", "open"]


def test_what_costs_more_comes_first_and_is_what_to_look_at(planted):
    found, _ = judged(planted)
    assert [each.cost for each in found] == sorted((each.cost for each in found), reverse=True)
    assert found[1].cost == found[1].changes[0].size, "its improvement costs nothing"
    latest = RecentChanges("", [], "")
    assert advice(found, latest, []) == ("", found[0].changes[0])


def test_what_the_page_says_to_acknowledge_does_acknowledge_it(planted, tmp_path):
    found, verdicts = judged(planted)
    assert sum(each.has_regression for each in verdicts.values()) == 2
    path = tmp_path / "triage.toml"
    path.write_text("\n".join(each.acknowledge for each in found))
    again, verdicts = judged(planted, triage=load_triage(path))
    assert [each.kind for each in again] == ["known", "known"]
    assert not any(each.has_regression for each in verdicts.values())
    assert not any(each.acknowledge for each in again)


def test_marks_stand_at_the_likeliest_commit(planted):
    _, verdicts = judged(planted)
    marks = marks_by_commit(verdicts)
    assert ("worse", 1) in marks[planted.hashes[-1]]
    assert [word for word, _ in marks[planted.hashes[-3]]] == ["worse", "better"]


def test_the_list_of_commits_has_their_authors_and_marks(planted, tmp_path):
    build_site(planted.results, tmp_path / "site", repository=planted.repository)
    page = (tmp_path / "site" / "commits.html").read_text()
    words = " ".join(Page(tmp_path / "site" / "commits.html").text.split())
    assert re.search(
        rf"{planted.hashes[-3][:8]} 2026-01-10 ▼ worse 1 ▲ better 1 {MESSAGES[3]} "
        r"\w+ Example 60",
        words,
    )
    assert 2 <= len(re.findall('data-row="[a-z]', page)) < len(planted.hashes)


def test_where_nobody_knows_messages_the_list_of_commits_says_so_once(planted, tmp_path):
    build_site(planted.results, tmp_path / "site")
    page = Page(tmp_path / "site" / "commits.html")
    assert "Messages and authors are missing, for these results lie in no repository" in page.text
    assert "Author" not in page.text
    assert "–" not in page.text


def test_with_a_configuration_asvs_command_is_there_too(planted, tmp_path):
    build_site(planted.results, tmp_path / "site", repository=planted.repository)
    words = " ".join(Page(tmp_path / "site" / "index.html").text.split())
    pair = f"{planted.hashes[-2][:10]} {planted.hashes[-1][:10]}"
    assert f"gcbench gate {pair}" in words
    assert re.search(rf"asv --config asv\.conf\.json continuous .*track_gc_col.* {pair}", words)
