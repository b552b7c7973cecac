"""A report as one file of HTML that asks nobody for anything: styles and pictures are in it."""

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from harness.format import printable
from harness.report.table import PlainTable
from harness.report.verdict_words import SIGNS

_TEMPLATE = Path(__file__).parent / "templates" / "page.html"
_CLASSES = {SIGNS["better"]: "better", SIGNS["worse"]: "worse", SIGNS["inconclusive"]: "open"}


class Picture(NamedTuple):
    """``text`` says what an image shows, for those who do not see it too."""

    title: str
    text: str
    image: bytes
    kind: str = "svg+xml"

    @property
    def source(self) -> str:
        """The image as an address."""
        return f"data:image/{self.kind};base64,{b64encode(self.image).decode()}"


class Page(NamedTuple):
    """What a page says, from the top: the answer, how sure it is, pictures, and all the rest."""

    title: str
    about: str
    headline: str
    sentences: Sequence[str]
    tables: Sequence[PlainTable]
    sure: Sequence[tuple[str, str]]
    pictures: Sequence[Picture]
    markdown: str
    more: Sequence[PlainTable]
    lists: Sequence[tuple[str, Sequence[str]]]
    facts: Sequence[tuple[str, str]]


def page_bytes(page: Page) -> bytes:
    """The page as UTF-8; words of others are shown as they stand. Imports Jinja2 when called."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, finalize=_shown
    )
    template = environment.from_string(_TEMPLATE.read_text("utf-8"))
    return template.render(page=page, classes=_CLASSES).encode()


def _shown(value: object) -> object:
    """A text without the characters that turn the direction of reading."""
    return "\n".join(map(printable, value.split("\n"))) if type(value) is str else value
