"""Figures of README and docs are those of stored results; what is not traced is counted."""

from functools import cache

import pytest
from pages import ROOT, links

from benchmarks.figures.entries import load, pages
from benchmarks.figures.page import filled, sentences_of, traced_spans, untraced
from benchmarks.figures.pictures import is_current, pictures
from benchmarks.figures.provenance import is_shallow, lacks

ENTRIES = load()
TRACED = sorted({each.page for each in ENTRIES.sentences})
FILES = sorted(
    {file for each in ENTRIES.sentences for one in each.every() for file in one.files}
    | {file for each in ENTRIES.pictures for file in each.results}
)


@cache
def read(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


@pytest.mark.parametrize("page", TRACED)
def test_the_page_has_the_figures_of_the_stored_results(page):
    assert filled(page, read(page), ENTRIES) == read(page), "run make figures"


@pytest.mark.parametrize("page", TRACED)
@pytest.mark.parametrize("digit", [0, -1], ids=["first", "last"])
def test_a_digit_changed_by_hand_is_noticed_in_every_traced_figure(page, digit):
    text = changed = read(page)
    for start, end in traced_spans(page, text, ENTRIES):
        if digits := [at for at in range(start, end) if text[at].isdigit()]:
            at = digits[digit]
            changed = f"{changed[:at]}{(int(text[at]) + 1) % 10}{changed[at + 1 :]}"
    assert changed != text
    assert filled(page, changed, ENTRIES) == text


@pytest.mark.parametrize("page", pages())
def test_as_many_figures_are_not_traced_as_figures_toml_says(page):
    """Fewer from change to change: where you trace some, lower the number."""
    left = untraced(page, read(page), ENTRIES)
    assert len(left) == ENTRIES.untraced.get(page, 0), left


def test_the_readme_is_traced_completely():
    assert "README.md" not in ENTRIES.untraced
    assert set(ENTRIES.untraced) <= set(pages())
    assert all(ENTRIES.untraced.values())


def test_each_text_that_is_listed_for_any_page_stands_on_one():
    texts = [each.text for each in ENTRIES.not_measured if not each.page]
    assert [text for text in texts if not any(text in read(page) for page in pages())] == []


def test_every_picture_is_that_of_its_stored_results():
    drawn = {each.file for each in ENTRIES.pictures}
    assert drawn | set(ENTRIES.not_drawn) == pictures()
    assert not drawn & set(ENTRIES.not_drawn)
    assert [each.file for each in ENTRIES.pictures if not is_current(each)] == [], "make figures"


def test_stored_files_say_how_to_measure_them_again():
    """Those that do not are listed with what they lack; the list may only become shorter."""
    if is_shallow():
        pytest.skip("this clone has only a part of the history")
    assert {file: lacking for file in FILES if (lacking := lacks(file))} == ENTRIES.incomplete


@pytest.mark.parametrize("page", TRACED)
def test_a_page_says_so_where_its_results_cannot_be_measured_again(page):
    files = {file for each in sentences_of(page, ENTRIES) for file in each.files}
    if files & set(ENTRIES.incomplete):
        assert any(
            link.endswith("results/published/README.md#incomplete") for link in links(ROOT / page)
        )
