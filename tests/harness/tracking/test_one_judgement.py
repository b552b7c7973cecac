"""One series, one judgement: whatever the history, all that speaks of a series says the same."""

import json
import math
import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from examples import examples
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from planted_nights import EXACT, MACHINE, TIMING, Nights, git
from shown_site import Row, Site

from harness.cli.main import main
from harness.report.series_words import LABELS
from harness.tracking.reruns import StoredRerun, add_reruns

pytest.importorskip("asv")

COUNT = 24
ASIDE = (6, 13, 19, 21, 23)
"""Commits that no branch has: their history was rewritten. The newest is one."""
MAIN = [number for number in range(COUNT) if number not in ASIDE]
HIGHER = TIMING._replace(
    name="suite.track_rate", attributes=dict(TIMING.attributes) | {"direction": "higher"}
)
SERIES = {
    "suite.track_itl": "itl",
    "suite.track_rate": "rate",
    "suite.track_gen0('default')": "gen0 · default",
    "suite.track_gen0('disabled')": "gen0 · disabled",
}
"""Titles by names."""
REASON = "triaged by a test"
RECENT = 7


class Made(NamedTuple):
    """A history: a value of each series at each commit, and what else is known of it.

    ``measured``: the rewritten commits that have results. ``reruns``: series, two commits, ratio.
    ``resets``: metric and commit. ``triaged``: metric, and a commit or None for all.
    ``ended``: the first commit at which a benchmark was not run any more, by its name.
    """

    values: dict[str, list[float]]
    measured: Collection[int] = ()
    reruns: Sequence[tuple[str, int, int, float]] = ()
    resets: Sequence[tuple[str, int]] = ()
    triaged: Sequence[tuple[str, int | None]] = ()
    ended: Mapping[str, int] = {}


@st.composite
def histories(draw: st.DrawFn) -> Made:
    """Levels with steps, late ones above all; nights of nothing, also many at the end."""
    late = st.integers(11, COUNT - 1)
    values = {}
    for name in SERIES:
        steps = draw(st.lists(st.tuples(late, st.sampled_from([1.3, 1 / 1.3, 1.15])), max_size=3))
        level = [100.0] * COUNT
        for place, factor in steps:
            level = [value * (factor if n >= place else 1) for n, value in enumerate(level)]
        if "gen0" in name:
            level = [float(round(value)) for value in level]
        else:
            noise = random.Random(draw(st.integers(0, 50)))
            level = [value * noise.gauss(1, 0.01) for value in level]
        first = draw(st.sampled_from([0, 0, 0, 14]))
        nothing = draw(st.sets(late, max_size=8))
        nothing |= set(range(draw(st.sampled_from([COUNT, COUNT, COUNT - 2, COUNT - 9])), COUNT))
        values[name] = [
            math.nan if n in nothing or n < first else value for n, value in enumerate(level)
        ]
    kept, metric = st.sampled_from(MAIN[9:]), st.sampled_from(["itl", "rate", "gen0"])
    pairs = st.lists(st.sampled_from(MAIN[-5:]), min_size=2, max_size=2, unique=True).map(sorted)
    reruns = draw(
        st.lists(
            st.tuples(st.sampled_from(list(SERIES)[:2]), pairs, st.sampled_from([1.0, 1.3])),
            max_size=2,
        )
    )
    return Made(
        values,
        draw(st.sets(st.sampled_from(ASIDE))),
        [(name, *pair, ratio) for name, pair, ratio in reruns],
        draw(st.lists(st.tuples(metric, kept), max_size=1)),
        draw(st.lists(st.tuples(metric, kept | st.none()), max_size=2)),
        draw(st.dictionaries(st.sampled_from([HIGHER.name, EXACT.name]), late, max_size=1)),
    )


@pytest.fixture(scope="module")
def nights(tmp_path_factory) -> Nights:
    return Nights(tmp_path_factory.mktemp("toy"), COUNT, aside=ASIDE)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))


class Shown(NamedTuple):
    """All that a night has left behind."""

    status: int
    result: dict[str, Any]
    markdown: str
    site: Site
    history: list[dict[str, Any]]


def shown(nights: Nights, made: Made) -> Shown:
    nights.clear()
    measured = [n for n in range(COUNT) if n in MAIN or n in made.measured]
    both = [
        list(pair) for pair in zip(*(made.values[name] for name in list(SERIES)[2:]), strict=True)
    ]
    nights.plant(
        [
            (TIMING, made.values["suite.track_itl"]),
            (HIGHER, made.values["suite.track_rate"]),
            (EXACT, both),
        ],
        only=measured,
        ended=made.ended,
    )
    add_reruns(
        nights.results,
        [
            StoredRerun(
                machine=MACHINE,
                environment="py3.11",
                series=name,
                ratio=ratio,
                before=nights.hashes[one],
                after=nights.hashes[other],
                ci95=(ratio * 0.98, ratio * 1.02),
                rounds=5,
            )
            for name, one, other, ratio in made.reruns
        ],
    )
    entries = [
        f'[[{kind}]]\nmetric = "{metric}"\nreason = "{REASON}"\n'
        + (f'commit = "{nights.hashes[place]}"\n' if place is not None else "until = 2999-01-01\n")
        for kind, metric, place in (
            *(("reset", *each) for each in made.resets),
            *(("ignored" if each[1] is None else "acknowledged", *each) for each in made.triaged),
        )
    ]
    (nights.folder / "triage.toml").write_text("".join(entries))
    status = nights.run("--reruns", "0")
    changes = nights.output / "changes.json"
    config = str(nights.folder / "asv.conf.json")
    assert main(["report", config, "--json", str(changes)]) in (0, 3)
    return Shown(
        status,
        json.loads((nights.output / "result.json").read_text()),
        (nights.output / "night.md").read_text(),
        Site(nights.output / "site"),
        json.loads(changes.read_text())["changes"],
    )


def flat(**steps: float) -> dict[str, list[float]]:
    """100, and of all series or of those with a metric more from a place on: all_12=1.3."""
    found = {}
    for name, title in SERIES.items():
        level = [100.0] * COUNT
        for what, factor in steps.items():
            metric, _, place = what.rpartition("_")
            if metric == "all" or title.startswith(metric):
                level[int(place) :] = [value * factor for value in level[int(place) :]]
        found[name] = level
    return found


# What pages, alerts, summary and exit status did not say alike.
NAN_NIGHTS = Made(
    {
        name: [value if n < 13 else math.nan for n, value in enumerate(values)]
        for name, values in flat(all_12=1.3).items()
    }
)
UNDONE = Made(flat(all_17=1.3, all_20=1 / 1.3), ASIDE, ended={HIGHER.name: 19})
KNOWN = Made(
    flat(gen0_20=1.3, itl_22=1.3, rate_22=1.3),
    (),
    [("suite.track_itl", 20, 22, 1.0)],
    [("rate", 22)],
    [("gen0", None)],
)


@pytest.mark.slow
@examples(20, [HealthCheck.function_scoped_fixture])
@example(NAN_NIGHTS)
@example(UNDONE)
@example(KNOWN)
@given(histories())
def test_all_that_speaks_of_a_series_says_the_same(nights, made):
    found = shown(nights, made)
    site, result = found.site, found.result
    today = dict(enumerate(site.today[number] for number in range(len(SERIES))))
    rows = site.rows()
    the_overview_agrees_with_itself(site, today, rows)
    the_summary_agrees(found, today, rows)
    for number, word in today.items():
        the_compare_page_agrees(site, number, word, [r for r in rows if r.number == number])
        the_commit_pages_agree(site, number, rows)
    the_command_history_agrees(found)
    rewritten = {nights.hashes[number] for number in made.measured}
    assert not rewritten & set(site.commits)
    assert not rewritten & {row[side] for row in found.history for side in ("base", "head")}
    told = json.dumps([result["alerts"], result["suspicious"]])
    assert not [commit for commit in rewritten if commit in told]


def the_overview_agrees_with_itself(site: Site, today: dict[int, str], rows: list[Row]) -> None:
    assert {n: LABELS[word][2:] for n, word in today.items()} == site.cells
    if set(today.values()) == {"insufficient"}:
        assert "too few commits" in site.sentence
    else:
        said = [site.sentence.partition(": ")[2].rstrip("."), site.rest]
        assert sum(map(counted, said), Counter()) == Counter(today.values())
    for number, word in today.items():
        words = {row.word for row in rows if row.number == number}
        if word in ("worse", "better", "suspicious"):
            assert word in words
        elif word in ("same", "inconclusive"):
            assert {"worse", "better"} <= words
        else:
            assert words == set()


NO_NEWS = "nothing became worse or better"
NAMES = {
    "regression": "worse",
    "regressions": "worse",
    "improvement": "better",
    "improvements": "better",
    "suspicious": "suspicious",
    "inconclusive": "inconclusive",
    "the same": "same",
    "with no change shown": "no_change_shown",
    "with too few points": "insufficient",
}


def counted(sentence: str) -> Counter[str]:
    found = Counter[str]()
    for part in sentence.split(", ") if sentence not in ("", NO_NEWS) else ():
        number, _, name = part.partition(" (")[0].partition(" ")
        found[NAMES[name]] += int(number)
    return found


def the_summary_agrees(found: Shown, today: dict[int, str], rows: list[Row]) -> None:
    result = found.result
    assert Counter(result["verdicts"]) == Counter(today.values())
    number = {name: found.site.titles.index(title) for name, title in SERIES.items()}
    told = [
        (
            number[each["series"]],
            each["verdict"],
            alert["last_before"] if len(alert["changes"]) == 1 else "",
            each["status"] == "open",
        )
        for alert in result["alerts"]
        for each in alert["changes"]
    ]
    listed = [row for row in rows if row.word != "suspicious"]
    assert sorted(each[:2] + each[3:] for each in told) == sorted(
        (row.number, row.word, row.is_open) for row in listed
    )
    assert {(each[0], each[2]) for each in told if each[2]} <= {
        (row.number, row.last_before) for row in listed
    }
    assert sorted(number[each["series"]] for each in result["suspicious"]) == sorted(
        row.number for row in rows if row.word == "suspicious"
    )
    is_worse = any(row.word == today[row.number] == "worse" and row.is_open for row in rows)
    unsettled = any(
        today[row.number] == "inconclusive" and row.word == "worse" and row.is_open for row in rows
    )
    nothing = set(today.values()) == {"insufficient"}
    assert found.status == (1 if is_worse else 3 if unsettled or nothing else 0)
    headline = found.markdown.splitlines()[0]
    assert is_worse == ("made something worse" in headline)
    assert any("(regression)" in line for line in found.markdown.splitlines()) == is_worse


def the_compare_page_agrees(site: Site, number: int, word: str, rows: list[Row]) -> None:
    with_value = [c for c in site.commits if site.compared(number, c, c) != "missing"]
    if len(with_value) < 2:
        assert word == "insufficient"
        return
    news = [row for row in rows if row.word != "suspicious"] or rows
    if news:
        since = min((row.last_before for row in news), key=site.commits.index)
    else:
        since = with_value[-RECENT - 1 :][0]
    words = site.compared(number, since, with_value[-1])
    assert words == word or (not news and words == "reset")
    turned = {"worse": "better", "better": "worse"}
    assert site.compared(number, with_value[-1], since) == turned.get(words, words)


def the_commit_pages_agree(site: Site, number: int, rows: list[Row]) -> None:
    before, said = None, dict[str, str]()
    for commit in site.commits:
        page = site.on_page_of(commit).get(number)
        if page is None or site.compared(number, commit, commit) == "missing":
            assert page is None or page.word == "missing"
            continue
        assert page.before == before
        if before:
            assert page.word == site.compared(number, before, commit)
            said[commit] = page.word
        before = commit
    # Of a long range the overview names the ends, and nobody blames a commit without a value.
    mine = [
        (row.word, [commit for commit in row.plausible if commit in said])
        for row in rows
        if row.number == number
    ]
    named = Counter(commit for _, plausible in mine for commit in plausible)
    for word, plausible in mine:
        unsure = "suspicious" if word == "suspicious" else "inconclusive"
        expected = word if len(plausible) == 1 else unsure
        for commit in plausible:
            if named[commit] == 1:
                assert said[commit] == expected
    recent = list(said)[-RECENT:]
    # What became news later than it came in may lie further back, never the other way round.
    assert {c for c in recent if said[c] in ("worse", "better", "suspicious")} <= set(named) | {
        c for c in recent if site.compared(number, recent[0], recent[-1]) == "reset"
    }


def the_command_history_agrees(found: Shown) -> None:
    for row in found.history:
        number = found.site.titles.index(SERIES[row["series"]])
        assert row["verdict"] == found.site.compared(number, row["base"], row["head"])


def test_the_planted_commits_are_on_no_branch(nights):
    listed = git(nights.folder, "rev-list", "main").split()
    assert set(nights.hashes) - set(listed) == {nights.hashes[number] for number in ASIDE}
    assert Path(nights.results).parent == nights.folder
