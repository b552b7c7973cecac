"""A page with its figures written in anew, and those of its figures that nothing accounts for."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

from benchmarks.claims.ledger import load as load_claims
from benchmarks.claims.stored import PUBLISHED, stored_findings
from benchmarks.claims.words import ruling
from benchmarks.figures.entries import Condition, Entries, NotMeasured, NotStored, Sentence
from benchmarks.figures.stored import Stored, find, ratio_of, read_stored
from benchmarks.figures.template import Template, look_up
from benchmarks.figures.value import measured_spans
from harness.experiment.result import MetricSamples

Span = tuple[int, int]
_FENCE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)


def filled(page: str, text: str, entries: Entries) -> str:
    """The page's ``text`` with every traced figure as the stored files have it.

    Raises ValueError where sentences are not there, or are no longer true; StoreError.
    """
    wrong = []
    for sentence in sentences_of(page, entries):
        try:
            names = names_of(sentence)
            _check(sentence, names)
            template = Template(sentence.text)
            place = template.find(text)
            new = template.filled(template.values(names))
        except ValueError as error:
            wrong.append(f"{page}: {error}")
        else:
            text = text[: place.start()] + new + text[place.end() :]
    if wrong:
        raise ValueError("\n".join(wrong))
    return text


def sentences_of(page: str, entries: Entries) -> Iterator[Sentence]:
    """Those of one page."""
    for sentence in entries.sentences:
        if sentence.page == page:
            yield from sentence.every()


def traced_spans(page: str, text: str, entries: Entries) -> list[Span]:
    """Where the page has figures of stored files."""
    places = [Template(each.text).find(text) for each in sentences_of(page, entries)]
    return [place.span(number) for place in places for number in range(1, place.re.groups + 1)]


def untraced(page: str, text: str, entries: Entries) -> list[str]:
    """Figures that look measured, and that no entry and no example accounts for, with their place.

    Raises ValueError where the text of an entry is not in the page.
    """
    known = [*traced_spans(page, text, entries), *_examples(text)]
    listed: list[NotMeasured | NotStored] = [*entries.not_measured, *entries.not_stored]
    for each in listed:
        if each.page in ("", page):
            places = [found.span() for found in re.finditer(re.escape(each.text), text)]
            if each.page and not places:
                raise ValueError(f"{page}: nothing reads {each.text!r} any more; take it out")
            known += places
    accounted = {at for start, end in known for at in range(start, end)}
    return [
        text[max(0, start - 30) : end + 20].replace("\n", " ")
        for start, end in measured_spans(text)
        if not all(at in accounted for at in range(start, end) if text[at].isdigit())
    ]


def names_of(sentence: Sentence) -> dict[str, object]:
    """What the braces of a sentence can name. Raises ValueError, StoreError."""
    if not sentence.cells:
        return {"claims": _rulings()}
    cells = {
        name: find(values, _stored(str(file))) for name, (file, *values) in sentence.cells.items()
    }
    changes = {
        name: ratio_of(cells[each.of], cells[each.against], each.metric, each.per)
        for name, each in sentence.changes.items()
    }
    return cells | changes


@cache
def _stored(name: str) -> Stored:
    return read_stored(PUBLISHED / name)


@cache
def _rulings() -> Mapping[str, int]:
    """How many claims of the ledger are ruled on in each way, and how many there are: "all"."""
    ledger = load_claims()
    stored = stored_findings(ledger, ledger.claims)
    count = Counter(ruling(claim, stored) for claim in ledger.claims)
    return dict(count, all=count.total())


def _check(sentence: Sentence, names: Mapping[str, object]) -> None:
    for condition in sentence.only_if:
        value = look_up(condition.figure, names)
        if not _is_met(condition, value):
            raise ValueError(
                f"{sentence.text!r} is no longer true: {condition.figure} is {value}; write the "
                "sentence anew, here and in figures.toml"
            )


def _is_met(condition: Condition, value: object) -> bool:
    if condition.equals:
        return value == condition.equals
    if isinstance(value, MetricSamples):
        value = value.value
    if not isinstance(value, (int, float)):
        raise ValueError(f"{condition.figure} is {value!r}, which has no bounds")
    low, high = condition.limits(is_ratio=False)
    return low <= value <= high


def _examples(text: str) -> Iterator[Span]:
    """Blocks of output that the line before calls an example."""
    for fence in _FENCE.finditer(text):
        before = text[: fence.start()].rstrip().rpartition("\n")[2]
        if "example" in before.lower():
            yield fence.span()
