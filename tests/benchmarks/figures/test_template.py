"""Templates of figures: what is written in is what is read back, and nothing else fits."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures.template import Template
from benchmarks.figures.value import VALUE, measured_spans
from harness import format as fmt

COUNTS = st.integers(0, 10**9)
RATIOS = st.floats(0.01, 100)
FIGURES = st.one_of(
    st.builds(fmt.number, st.floats(-1e9, 1e9)),
    st.builds(fmt.seconds, st.floats(1e-9, 1e4)),
    st.builds(fmt.count, COUNTS),
    st.builds(fmt.ratio, RATIOS),
    st.builds(fmt.percent, st.floats(-1, 10), signed=st.booleans()),
    st.builds(lambda a, b: fmt.interval((a, b)), RATIOS, RATIOS),
    st.builds(lambda a, b, c: f"{a:,}/{b:,}/{c:,}", COUNTS, COUNTS, COUNTS),
)
SIGNS = st.sampled_from("(),;: |*`\n")
WORDS = st.builds(
    lambda first, words, last: first + words + last,
    SIGNS,
    st.text(string.ascii_lowercase + " ", max_size=5),
    SIGNS,
)


@given(st.data(), st.lists(FIGURES, min_size=1, max_size=5))
def test_what_is_written_in_is_read_back(data, figures):
    words = [data.draw(WORDS) for _ in range(len(figures) + 1)]
    names = {f"name{number}": figure for number, figure in enumerate(figures)}
    text = "".join(f"{each}{{{name}}}" for each, name in zip(words, names, strict=False))
    template = Template(text + words[-1])
    assert template.values(names) == figures
    page = f"Before.\n{template.filled(figures)}\nAfter."
    assert list(template.find(page).groups()) == figures


@given(FIGURES)
def test_every_figure_of_reports_is_a_value(figure):
    assert re.fullmatch(VALUE, figure)


@pytest.mark.parametrize(
    ("text", "measured"),
    [
        ("grew by 61.9 % (95 %: +59.7 to +64.2 %)", ["61.9 %", "+59.7 to +64.2 %"]),
        ("Python 3.11, vLLM 0.13.0, #26368 and torch 2.11 to 2.14", []),
        ("a step takes 1.51 ms, 0.3 µs or 12 s", ["1.51 ms", "0.3 µs", "12 s"]),
        ("1,904 at ×8.30, counts 920/84/1", ["1,904", "×8.30", "920/84/1"]),
        ("| 0.31 | 3.11.7 | 12 |", ["0.31"]),
        ("0.31 in a sentence, `--rounds 7`, at 20 of 20", []),
        ("708 req/s, −5.2 % and -5.2 %", ["708 req/s", "−5.2 %", "-5.2 %"]),
        ("at most 6 collections in 206 steps", ["6 collections"]),
    ],
)
def test_what_looks_measured(text, measured):
    assert [text[start:end] for start, end in measured_spans(text)] == measured


def test_a_place_that_is_not_there_or_not_alone_is_refused():
    template = Template("takes {a:number} ms.")
    assert template.find("It takes 12 ms. It took 13 ms.")[1] == "12"
    with pytest.raises(ValueError, match="0 places read"):
        template.find("It takes long.")
    with pytest.raises(ValueError, match="2 places read"):
        template.find("It takes 12 ms. It takes 13 ms.")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nothing", "no figure"),
        ("{a}{b}", "two figures touch"),
        ("{a:furlongs}", "no format 'furlongs'"),
    ],
)
def test_a_template_that_could_not_be_read_back_is_refused(text, why):
    with pytest.raises(ValueError, match=why):
        Template(text)


def test_a_figure_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"there is no freeze\.ratio"):
        Template("{freeze.ratio:change}").values({"freeze": 1.0})
    with pytest.raises(ValueError, match="cannot be written so"):
        Template("{freeze:change}").values({"freeze": "fast"})
    with pytest.raises(ValueError, match="None, of which there is no figure"):
        Template("{freeze:change}").values({"freeze": None})
