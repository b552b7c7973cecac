"""An experiment's page: what it concludes, its verdicts on one scale, its cells."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from release_results import cell, result
from test_site import PUBLISHED, Page

from dashboards.content.experiments import date_of
from dashboards.pictures.intervals import pictures
from dashboards.site import build_site
from harness.experiment.result import Comparison
from harness.experiment.store import load_experiment


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """Those of the main job's page."""
    site = tmp_path_factory.mktemp("experiment") / "site"
    build_site(PUBLISHED, site)
    return " ".join(Page(site / "experiment" / "main-job.html").text.split())


def test_it_says_the_answer_first_and_every_verdict_with_its_interval(words):
    assert re.search(r"main-job Take flat_arrays · columnar · freeze, .* Best: flat_arrays", words)
    row = r"list_of_arrays · per_request · default -2\.3 % -3\.6 to -1\.0 % ▼ worse ±5\.1 %"
    assert re.search(row, words)
    assert words.count("▼ worse ±") + words.count("▲ better ±") == 8


def test_a_judged_cell_has_the_change_that_was_judged(words):
    # The medians of the samples would give another.
    assert "756 req/s -2.3 % ▼ worse" in words


def comparison(ratio, reach, rounds=7):
    return Comparison(
        metric="request_throughput",
        baseline="a",
        candidate="b",
        ratio=ratio,
        ci95=(ratio / reach, ratio * reach),
        verdict="inconclusive",
        p_adjusted=1.0,
        mde=0.1,
        rounds=rounds,
    )


@given(st.lists(st.tuples(st.floats(1e-4, 1e4), st.floats(1.0, 10.0)), min_size=1, max_size=20))
def test_whatever_the_ratios_all_lies_within_the_picture(pairs):
    found = result([cell("1", 1)], comparisons=[comparison(*pair) for pair in pairs])
    (picture,) = pictures(found)
    for row in picture.rows:
        assert 0 <= row.left <= row.point <= row.left + row.width + 0.01
        assert row.left + row.width <= 100
    places = [place for place, _ in picture.ticks]
    assert all(0 <= place <= 100 for place in (*places, *picture.band))
    assert picture.band[0] < picture.one < sum(picture.band)
    assert all(b - a >= 20 for a, b in pairwise(places))


def test_of_too_few_rounds_there_is_no_picture():
    assert pictures(result([cell("1", 1)], comparisons=[comparison(1.5, 1.1, rounds=3)])) == []
    assert pictures(load_experiment(PUBLISHED / "vllm-releases.json")) == []


def test_an_experiments_date_is_that_in_its_name():
    assert date_of("2026-11-23T0412-opt125m-48-200") == "2026-11-23 04:12"
    assert date_of("main-job") == ""
