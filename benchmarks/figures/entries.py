"""figures.toml: which figure of which page stands in which stored file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from benchmarks.claims.bounds import Bounds
from benchmarks.claims.ledger import ROOT
from harness.axes import Value
from workloads.recipe.spec import read_toml

ENTRIES = Path(__file__).with_name("figures.toml")


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ratio of a ``metric`` of two cells, where ``per`` is given of it by that metric."""

    of: str
    against: str
    metric: str
    per: str = ""


class Condition(Bounds, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What words such as "a third" rest on: bounds of a ``figure``, or what it ``equals``."""

    figure: str
    equals: str = ""


class Sentence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``text``: of ``page``, with its figures in braces, each of something that is named here.

    ``cells``: a file in results/published, and the values by which the cell is told from others in
    it, or the keys to a part of a document. ``each``: the sentence once for each of these, with
    their values in the place of ``<name>``. ``only_if``: else the words are no longer true.
    """

    page: str
    text: str
    cells: dict[str, list[Value]] = {}
    changes: dict[str, Change] = {}
    each: list[dict[str, Value]] = []
    only_if: list[Condition] = []

    @property
    def files(self) -> list[str]:
        """In results/published."""
        return [str(file) for file, *_ in self.cells.values()]

    def every(self) -> Iterator["Sentence"]:
        """It, or what ``each`` makes of it."""
        if not self.each:
            yield self
        for replaced in self.each:
            plain = msgspec.structs.replace(self, each=[])
            text = msgspec.json.encode(plain).decode()
            for name, value in replaced.items():
                text = text.replace(f"<{name}>", msgspec.json.encode(str(value)).decode()[1:-1])
            yield msgspec.json.decode(text, type=Sentence)


class NotMeasured(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ``text`` of ``page``, or of any, with figures that were not measured here, and ``why``."""

    page: str = ""
    text: str
    why: str


class NotStored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ``text`` of ``page`` with figures of which no result is stored; ``command`` makes one."""

    page: str
    text: str
    command: str


class Drawing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A picture in docs/images, and the ``results`` that it shows."""

    file: str
    results: list[str]
    drawn_by: Literal["report", "releases", "pythons", "families", "step_parts"] = "report"


class Entries(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``untraced``: how many figures of a page are not traced yet. ``incomplete``: stored files
    that do not say all that it takes to measure them again, and what they lack. ``not_drawn``:
    pictures of which no result is stored, and what drew them.
    """

    sentences: list[Sentence]
    not_measured: list[NotMeasured] = []
    not_stored: list[NotStored] = []
    pictures: list[Drawing] = []
    not_drawn: dict[str, str] = {}
    untraced: dict[str, int] = {}
    incomplete: dict[str, str] = {}
    name: str = ""


def load(path: Path = ENTRIES) -> Entries:
    """Raises ValueError with one sentence that names the file and the place in it."""
    return read_toml(path, Entries, "figure")


def pages() -> list[str]:
    """README and docs, but for those that a program writes whole."""
    docs = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
    return ["README.md", *(page for page in docs if page not in WRITTEN_WHOLE)]


WRITTEN_WHOLE = ("docs/claims.md", "docs/metrics.md")
