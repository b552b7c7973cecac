"""What is said of a result, from the top: before anything is rendered, and of whatever kind."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.render.table import PlainTable
from harness.result.result import Result

Pairs = Sequence[tuple[str, str]]
"""Labels and what belongs to them; a label of "" goes on with the one above."""


class Picture(NamedTuple):
    """``text`` says what it shows, for those who do not see it too.

    ``draw`` takes ".png" or ".svg", after `image_file.NARROW` or not, and gives the file.
    ``is_dense``: too many marks for an SVG.
    ``in_text``: what a terminal shows in its place.
    """

    title: str
    text: str
    draw: Callable[[str], bytes]
    is_dense: bool = False
    in_text: PlainTable | None = None


class Listing(NamedTuple):
    """Lines under a title. ``is_bad``: what went wrong, which no report leaves out."""

    title: str
    lines: Sequence[str]
    is_bad: bool = False


class Section(NamedTuple):
    """One of several findings: ``short`` is shown in its place where there is no room for all."""

    title: str
    short: Pairs
    tables: Sequence[PlainTable]
    lines: Sequence[str]
    commands: Sequence[str] = ()


class Report(NamedTuple):
    """The answer first, then how sure it is, and last all the rest.

    ``heading``: what made it ("gcbench gate"); ``command``: with all its words. ``advice``: what to
    do now, a sentence for whoever reads no more. ``short``: the sentences as labelled words, in
    their place where there is little room. ``snippet``: code to
    take over. ``next``: commands by what they do. ``sure``: how far the answer can be relied upon.
    ``more``, the lists that are not bad and ``facts`` are details.
    """

    heading: str
    name: str
    answer: str
    advice: str = ""
    attention: str = ""
    short: Pairs = ()
    tables: Sequence[PlainTable] = ()
    sentences: Sequence[str] = ()
    snippet: str = ""
    sections: Sequence[Section] = ()
    lists: Sequence[Listing] = ()
    next: Pairs = ()
    sure: Pairs = ()
    more: Sequence[PlainTable] = ()
    facts: Pairs = ()
    command: str = ""
    pictures: Sequence[Picture] = ()


def known(pairs: Pairs) -> list[tuple[str, str]]:
    """The pairs that say something."""
    return [(label, words) for label, words in pairs if words]


def remarks(result: Result) -> list[Listing]:
    """What every result says of what it did not look at, and of how it came about."""
    return [Listing("Left out", result.left_out, is_bad=True), Listing("Notes", result.notes)]
