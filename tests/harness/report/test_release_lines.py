"""Along vLLM's releases: their order, what is known of them, where a change is marked, steps."""

import tomllib
from datetime import date
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version
from release_results import along, cell, result, timed
from small import CELL

from harness.report.known_releases import FILE, KnownChange, KnownReleases, known_releases
from harness.report.release_lines import (
    YOUNG,
    changes_by_release,
    in_order,
    left_out,
    release_lines,
    release_name,
    release_steps,
)
from harness.trial.spec import TrialFailure

ROOT = Path(__file__).parents[3]


def test_the_file_of_known_releases_is_in_order_and_whole():
    known = known_releases("vllm-hostpath")
    versions = [Version(each.version) for each in known.release]
    assert versions == sorted(set(versions))
    assert not any(version.is_prerelease for version in versions)
    assert [str(version) for version in versions] == [each.version for each in known.release]
    assert {each.date.year for each in known.release} == {2025, 2026}
    assert all(isinstance(each.date, date) for each in known.release)
    changed = [Version(change.release) for change in known.change]
    assert changed == sorted(changed)
    assert set(changed) <= set(versions), "a change is in a release that is there"
    pulls = [change.pull for change in known.change]
    assert len(set(pulls)) == len(pulls)
    for change in known.change:
        assert 0 < len(change.words) < 100, change
        assert not change.words.endswith("."), change
        assert change.url == f"https://github.com/vllm-project/vllm/pull/{change.pull}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('concerns = "serialisation"', 'concerns = "speed"'),
        ("pull = 34944", 'pull = "#34944"'),
        ("words = ", "word = "),
        ("date = 2025-07-25", 'date = "July"'),
        ("tried = ", "proof = "),
    ],
)
def test_a_word_that_the_file_does_not_know_is_refused(old, new):
    text = FILE.read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(tomllib.loads(text.replace(old, new)), KnownReleases)


def test_releases_are_ordered_as_versions_and_paths_come_last():
    assert in_order(["0.9.2", "/src/vllm", "0.10.1.1", "0.10.1", "0.10.10", "0.9.2"]) == [
        "0.9.2",
        "0.10.1",
        "0.10.1.1",
        "0.10.10",
        "/src/vllm",
    ]
    assert release_name("/home/someone/src/vllm") == "vllm"
    assert release_name("0.11.0") == "0.11.0"


def test_a_line_is_a_policy_and_what_else_varies():
    cells = [
        cell(release, 100, gc, batch_size=size)
        for release in ("0.12.0", "0.11.0")
        for gc in ("as_is", "freeze")
        for size in (8, 16)
    ]
    cells.pop()  # 0.11.0, freeze, 16
    found = release_lines(result(cells))
    assert found.releases == ["0.11.0", "0.12.0"]
    assert [line.name for line in found.lines] == [
        "as_is · 8",
        "as_is · 16",
        "freeze · 8",
        "freeze · 16",
    ]
    assert found.lines[0].medians(YOUNG) == [100, 100]
    assert found.lines[3].medians(YOUNG) == [None, 100]
    assert all(line.is_exact(YOUNG) for line in found.lines)
    assert not found.lines[0].is_exact("gc_pause_max")
    assert not found.lines[0].is_exact("no such metric")


def test_the_spread_is_of_what_samples_there_are():
    several = cell("0.11.0", 1)
    several.metrics["gc_pause_max"] = timed([3.0, None, 1.0])
    single = cell("0.12.0", 1)
    single.metrics["gc_pause_max"] = timed([None, 2.0])
    (line,) = release_lines(result([several, single])).lines
    assert line.spread("gc_pause_max") == [(1.0, 3.0), None]


def test_what_was_left_out_has_its_reason_and_what_is_there_is_not_left_out():
    failure = TrialFailure(
        cell=msgspec.structs.replace(CELL, release="0.13.0"),
        mode="counts",
        seed=0,
        kind="timed_out",
        reason="after 9 s",
    )
    there = msgspec.structs.replace(failure, cell=msgspec.structs.replace(CELL, release="0.11.0"))
    found = left_out(
        along(
            {"0.11.0": 3, "0.12.0": 2},
            missing_releases={
                "0.10.0": "vLLM 0.10.0 is too old: no worker; supported are later ones",
                "0.11.0": "it came after all",
            },
            failures=[failure, failure, there],
        )
    )
    assert found == {
        "0.10.0": "vLLM 0.10.0 is too old: no worker; supported are later ones",
        "0.13.0": "timed out: after 9 s",
    }


VERSIONS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(0, 3)), max_size=8, unique=True
).map(lambda parts: [".".join(map(str, part)) for part in parts])


@given(VERSIONS, VERSIONS, st.data())
def test_a_change_stands_at_the_first_release_that_has_it(releases, changed, data):
    changes = [
        KnownChange(pull, release, "scheduling", "w", data.draw(st.sampled_from(["", "yes"])))
        for pull, release in enumerate(changed)
    ]
    found = changes_by_release(data.draw(st.permutations(releases)), changes)
    for change in changes:
        since = Version(change.release)
        having = [each for each in releases if Version(each) >= since]
        older = [each for each in releases if Version(each) < since]
        is_first = min(map(Version, releases), default=None) == since
        place = [release for release, here in found.items() if change in here]
        if having and (older or is_first):
            assert place == [min(having, key=Version)]
        else:
            assert place == []
    for here in found.values():
        tried = [bool(change.tried) for change in here]
        assert tried == sorted(tried, reverse=True)


def test_steps_are_between_neighbours_with_a_figure_the_largest_first():
    releases = ["0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "/src/vllm"]
    found = release_steps(releases, [1000, 1001, None, 2000, 500, 7], YOUNG)
    assert [(step.before, step.after) for step in found] == [("0.4.0", "0.5.0"), ("0.2.0", "0.4.0")]
    assert (found[0].value_before, found[0].value_after) == (2000, 500)
    assert found[0].size == pytest.approx(2 * found[1].size, rel=0.01)
    (appeared,) = release_steps(["0.1.0", "0.2.0"], [0, 9], YOUNG)
    assert appeared.size == float("inf")
    assert release_steps(releases, [None] * 6, YOUNG) == []
