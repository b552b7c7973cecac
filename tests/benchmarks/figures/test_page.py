"""A page is filled from stored results, or it is said why not."""

import msgspec
import pytest

from benchmarks.figures.entries import Condition, Entries, NotMeasured, Sentence
from benchmarks.figures.page import filled, sentences_of, untraced

SENTENCE = Sentence(
    page="a.md",
    text="Host time is {vllm.change.ratio:number} times as long.",
    cells={"vllm": ["builtin-and-vllm.json", "vllm-hostpath"]},
    only_if=[Condition(figure="vllm.change.verdict", equals="worse")],
)
ENTRIES = Entries(sentences=[SENTENCE])


def test_it_writes_the_stored_figure_in():
    page = "It rose by 3 %.\nHost time is 2 times as long. It is 7 ms.\n"
    after = filled("a.md", page, ENTRIES)
    assert after == page.replace(" 2 times", " 8.30 times")
    assert filled("a.md", after, ENTRIES) == after
    assert filled("b.md", page, ENTRIES) == page
    assert len(untraced("a.md", after, ENTRIES)) == 2


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"text": "There was {vllm.change.ratio:number}."}, "a.md: 0 places read"),
        ({"cells": {"vllm": ["builtin-and-vllm.json", "sglang"]}}, "0 cells are sglang"),
        ({"cells": {"vllm": ["builtin-and-vllm.json"]}}, "2 cells are"),
        ({"cells": {"vllm": ["builtin-and-vllm.json", "worker=process"]}}, "0 cells are worker="),
        ({"only_if": [Condition(figure="vllm.change.verdict", equals="same")]}, "no longer true"),
        ({"only_if": [Condition(figure="vllm.change.ratio", at_most=8)]}, "no longer true"),
        ({"only_if": [Condition(figure="vllm[num_steps]", at_most=205)]}, "no longer true"),
        ({"only_if": [Condition(figure="vllm.axes[engine]", at_most=8)]}, "has no bounds"),
        ({"cells": {"vllm": ["builtin-and-vllm.json", "builtin"]}}, "candidate of 0 comparisons"),
        ({"cells": {"vllm": ["output-processing.json", "Part 1", "inline"]}}, "no part is"),
        ({"cells": {"vllm": ["crossover.json", "flat_arrays · columnar", 32]}}, "0 points"),
    ],
)
def test_it_says_why_not(changed, why):
    entries = Entries(sentences=[msgspec.structs.replace(SENTENCE, **changed)])
    with pytest.raises(ValueError, match=why):
        filled("a.md", "Host time is 2 times as long.", entries)


def test_one_sentence_for_each_of_several():
    rows = Sentence(
        page="a.md",
        each=[{"name": "builtin"}, {"name": "vllm-hostpath"}],
        cells={"of": ["builtin-and-vllm.json", "<name>"]},
        text='| "<name>" | {of.collections} |',
    )
    entries = Entries(sentences=[rows])
    page = '| "builtin" | 1/1/1 |\n| "vllm-hostpath" | 1/1/1 |\n'
    assert len(list(sentences_of("a.md", entries))) == 2
    assert filled("a.md", page, entries) == (
        '| "builtin" | 920/84/1 |\n| "vllm-hostpath" | 1,026/93/1 |\n'
    )


def test_what_is_listed_and_what_is_an_example_counts_as_accounted_for():
    page = "Limit 2 %.\n\nAn example:\n```\ntakes 3 ms\n```\n\nAs measured:\n```\ntakes 4 ms\n```\n"
    listed = Entries(sentences=[], not_measured=[NotMeasured(text="Limit 2 %", why="a limit")])
    (left,) = untraced("a.md", page, listed)
    assert "takes 4 ms" in left
    assert len(untraced("a.md", page, Entries(sentences=[]))) == 2
    gone = Entries(sentences=[], not_measured=[NotMeasured(page="a.md", text="Limit 5 %", why="")])
    with pytest.raises(ValueError, match="nothing reads 'Limit 5 %' any more"):
        untraced("a.md", page, gone)
