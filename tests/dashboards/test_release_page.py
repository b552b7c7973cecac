"""The page "vLLM by release" without a browser: its sentence, charts, table and what it escapes."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from release_results import along, cell, exact, result, timed
from test_site import Page, value_of

from dashboards.content.releases import CAPTIONS, TABLE_COLUMNS, release_study
from dashboards.site import build_site
from harness.experiment.result import Comparison
from harness.report.known_releases import known_releases
from harness.report.release_lines import BYTECODES, HOST_TIME, YOUNG

COUNTS = {"0.11.2": 1962, "0.11.0": 2927, "0.11.1": 1962, "0.16.0": 1965, "0.17.1": 1529}
TOO_OLD = {"0.10.0": "vLLM 0.10.0 is too old; supported are 0.10.2 and later"}


def page_of(tmp_path, *results):
    """The built page, and what its charts draw."""
    folder = tmp_path / "results" / "published"
    folder.mkdir(parents=True)
    for number, each in enumerate(results):
        (folder / f"{number}.json").write_bytes(msgspec.json.encode(each))
    built = build_site(tmp_path / "results", tmp_path / "site")
    assert built.problems == []
    site = tmp_path / "site"
    return Page(site / "releases.html"), value_of(site / "data" / "releases.js")


def words(page):
    return " ".join(page.text.split())


def test_the_sentence_names_the_largest_steps_and_what_was_tried_there():
    study = release_study(along(COUNTS))
    assert study.sentence == (
        "The exact count of young collections (as_is) goes from 2,927 in 0.11.0 to 1,529 in "
        "0.17.1; the largest step between neighbours is 0.11.0 → 0.11.1, 2,927 to 1,962 (-33.0 %, "
        "with #24964), the next 0.16.0 → 0.17.1, 1,965 to 1,529 (-22.2 %, with #34944)."
    )


@pytest.mark.parametrize(
    ("young", "ending"),
    [
        ({"0.13.0": 100, "0.14.0": 100}, "(as_is) is the same in all releases."),
        ({"0.13.0": 100, "0.14.0": 101}, "(as_is) is the same in all releases."),
        (
            {"0.13.0": 100, "0.14.0": 150},
            "0.13.0 → 0.14.0, 100 to 150 (+50.0 %), and there is no other.",
        ),
        ({"0.13.0": 0, "0.14.0": 150}, "0.13.0 → 0.14.0, 0 to 150, and there is no other."),
    ],
)
def test_sentences_of_fewer_steps(young, ending):
    assert release_study(along(young)).sentence.endswith(ending)


def test_of_counts_that_do_not_repeat_nothing_exact_is_said():
    cells = [cell(release, 9) for release in ("0.11.0", "0.12.0")]
    for each in cells:
        each.metrics[YOUNG] = timed([9.0, 8.0])
    study = release_study(result(cells))
    assert study.sentence.startswith("There is no exact count")
    assert study.charts[2].trust.startswith("Counted, and not exact here")


def test_the_headline_is_growth_with_a_verdict_where_there_is_one():
    cells = [cell("0.11.0", 9), cell("0.12.0", 9), cell("/src/vllm", 9)]
    for each, bytecodes, seconds in zip(cells, (100, 125, 1), (4.0, 3.0, 1.0), strict=True):
        each.metrics[BYTECODES], each.metrics[HOST_TIME] = exact(bytecodes), timed([seconds])
    assert release_study(result(cells)).headline == (
        "vLLM 0.12.0 takes the host 25.0 % less time per step (medians, no verdict) and 25.0 % "
        "more bytecodes per request and step than 0.11.0"
    )
    verdict = Comparison(
        candidate=cells[1].id,
        baseline=cells[0].id,
        metric="host_time_per_step",
        rounds=7,
        ratio=0.8,
        ci95=(0.7, 0.9),
        p_adjusted=0.01,
        verdict="better",
        mde=0.02,
    )
    said = release_study(result(cells, comparisons=[verdict])).headline
    assert "20.0 % less time per step (95 %: -30.0 to -10.0 %)" in said
    few = msgspec.structs.replace(verdict, rounds=6)
    assert "no verdict" in release_study(result(cells, comparisons=[few])).headline


def test_a_page_of_several_families_names_each(tmp_path):
    of_another = [cell(release, 9, engine="sglang-hostpath") for release in ("0.5.1", "0.5.23")]
    page, _ = page_of(tmp_path, along(COUNTS), result(of_another, name="other"))
    assert "SGLang: 1" in words(page)
    assert "SGLang 0.5.23 takes the host 0.0 % more time" in words(page)
    assert "radix cache" in words(page)


@given(
    st.lists(st.integers(1, 10_000), min_size=2, max_size=12),
    st.lists(st.sampled_from(["as_is", "freeze", "default"]), min_size=1, unique=True),
)
def test_any_counts_have_a_sentence_charts_and_a_row_each(counts, policies):
    young = {f"0.{minor}.0": count for minor, count in enumerate(counts, 11)}
    study = release_study(along(young, policies))
    assert f"in 0.{10 + len(counts)}.0" in study.sentence or "the same" in study.sentence
    assert [row.place for row in study.rows] == list(range(len(counts)))
    assert all(len(row.figures) == len(policies) for row in study.rows)
    assert all(len(each.values) == len(TABLE_COLUMNS) for row in study.rows for each in row.figures)
    assert [name for name, _ in study.legend] == policies
    for values in study.data["charts"]:
        assert [len(line) for line in values["value"]] == [len(counts)] * len(policies)
    json.dumps(study.data, allow_nan=False)


def test_one_release_makes_no_page(tmp_path):
    assert release_study(along({"0.11.0": 3})) is None
    folder = tmp_path / "results" / "published"
    folder.mkdir(parents=True)
    (folder / "one.json").write_bytes(msgspec.json.encode(along({"0.11.0": 3})))
    build_site(tmp_path / "results", tmp_path / "site")
    assert not (tmp_path / "site" / "releases.html").exists()
    assert "releases.html" not in (tmp_path / "site" / "index.html").read_text()


def test_the_table_says_what_changed_and_what_was_left_out(tmp_path):
    page, _ = page_of(tmp_path, along(COUNTS, missing_releases=TOO_OLD))
    said = words(page)
    assert "0.10.0 2025-07-25 Left out: vLLM 0.10.0 is too old; supported are" in said
    assert (
        "0.11.0 2025-10-04 as_is 0 20.0 ms 2,927/292/29 2.00 0 1,000 90.0 % 2.0 % 20.0 ms" in said
    )
    order = [
        said.index(f"{release} 202")
        for release in ("0.10.0", "0.11.0", "0.11.1", "0.11.2", "0.16.0", "0.17.1")
    ]
    assert order == sorted(order)
    tried = said.index("#34944 RequestOutput loses an unused field")
    assert tried > said.index("0.17.1 2026-03-11"), "it stands at the first release that has it"
    assert "output tokens, in 0.17.0 Tried: 0.16.0 with it alone: 330" in said
    by_pull = {change.pull: change.url for change in known_releases("vllm-hostpath").change}
    assert by_pull[24964] in page.links
    assert by_pull[48442] not in page.links, "no release here has it yet"


def test_charts_say_what_their_figures_are_worth(tmp_path):
    single = along({"0.11.0": 3, "0.12.0": 2})
    single = msgspec.structs.replace(
        single,
        name="single",
        cells=[msgspec.structs.replace(each, samples=1) for each in single.cells],
    )
    page, data = page_of(tmp_path, along(COUNTS), single)
    said = words(page)
    assert said.count("Exact: it repeats to the digit.") == 2 * 7
    assert said.count("Medians of 3 timed trials, without a verdict; bars from least to most.") == 3
    assert said.count("One timed trial, without a verdict.") == 3
    assert said.index("#24964") < said.index("0.12.0 2025"), "the study with most releases is first"
    assert said.index("Bytecodes per request step") < said.index("Young collections")
    assert [len(study["releases"]) for study in data] == [5, 2]
    charts = [attributes for tag, attributes in page.elements if "data-chart" in attributes]
    assert len(charts) == 2 * len(CAPTIONS)
    assert all(chart["tabindex"] == "0" and chart["aria-label"] for chart in charts)
    assert {chart["aria-describedby"] for chart in charts} <= page.ids


def test_the_data_of_charts_has_values_spreads_and_marks(tmp_path):
    cells = [cell("0.11.0", 5), cell("0.12.0", 4), cell("0.12.0", 3, "freeze")]
    cells[0].metrics["gc_pause_max"] = timed([2.0, None, 2.0])
    cells[0].metrics["tracked_heap"] = exact(7)
    _, (study,) = page_of(tmp_path, result(cells))
    charts = dict(zip(CAPTIONS, study["charts"], strict=True))
    assert study["lines"] == ["as_is", "freeze"]
    assert charts[YOUNG] == {
        "unit": "collections",
        "value": [[5, 4], [None, 3]],
        "spread": [[None] * 2] * 2,
    }
    assert charts["gc_pause_max"]["spread"] == [[None, [0.01, 0.03]], [None, [0.01, 0.03]]]
    assert charts["tracked_heap"]["value"] == [[7, 0], [None, 0]]
    (_, first_day, before), (version, day, marks) = study["releases"]
    assert (version, first_day, day) == ("0.12.0", "2025-10-04", "2025-12-03")
    assert before == [[24830, known_releases("vllm-hostpath").change[3].words, False]]
    assert marks[0][0] == 24964
    assert marks[0][2], "what was tried comes first"
    assert {pull for pull, _, _ in marks} >= {28771, 29121}, "of 0.11.1 and of 0.12.0"


def test_releases_and_notes_that_are_markup_stay_text(tmp_path):
    hostile = "/src/<img src=x onerror=alert(1)>"
    missing = {"0.10.0": "<script>alert(2)</script>"}
    page, (study,) = page_of(
        tmp_path,
        along({"0.12.0": 2, "0.11.0": 3, hostile: 1}, ["as_is", "<b>"], missing_releases=missing),
    )
    assert "img" not in [tag for tag, _ in page.elements]
    assert all(attributes.get("src") for tag, attributes in page.elements if tag == "script")
    assert "<script>alert(2)</script>" in page.text
    assert study["releases"][-1][0] == "<img src=x onerror=alert(1)>", "paths come last, as names"
    assert study["lines"] == ["as_is", "<b>"]
    assert not set("<>&") & set((tmp_path / "site" / "data" / "releases.js").read_text())
