"""What the pages of a site say of each series, read from the files that a browser would load."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

Pair = tuple[str, str]
"""Machine and title of a series."""


class Row(NamedTuple):
    """A row of the overview's list: a series' number, what has changed, and between what."""

    number: int
    word: str
    last_before: str
    plausible: list[str]
    is_open: bool


class OnCommitPage(NamedTuple):
    """What a commit's page says of a series."""

    before: str | None
    word: str
    note: str


class Site:
    """A built site."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index = _Page(folder / "index.html")
        self.sentence = self.index.heading
        found = re.search(
            r'<p class="lead">(?:The other )?[\d,]+ series: ([^<]*)\.</p>',
            (folder / "index.html").read_text(),
        )
        self.rest = found[1] if found else ""
        self.commits = [row[0] for row in self._data("commits.js")]
        self.titles = [row[1] for row in self._data("series.js")]
        self.verdicts = self._data("verdicts.js")
        self._of_commit = [
            {row[0]: row for row in self._data(f"commit/{row[4]}.js")}
            for row in self._data("commits.js")
        ]
        # A grid's cell leads to a page and a place on it, of which that page knows the number.
        self.today = {}
        for page in sorted((folder / "metric").glob("*.html")):
            self.today |= _Page(page).series
        self.cells = {}
        for page, place, title in self.index.cells:
            numbers = list(_Page(folder / "metric" / page).series)
            self.cells[numbers[int(place)]] = title

    def rows(self) -> list[Row]:
        """The overview's list."""
        return [self._row(row) for row in self.index.rows]

    def _row(self, row: "_Row") -> Row:
        between = row.cells[-1]
        # Two or fewer commits are named, of more the first and the last.
        linked = [commit for commit in self.commits for link in row.commits if link == commit[:8]]
        if "one of" in between:
            first, last = (self.commits.index(commit) for commit in linked)
            linked = self.commits[first : last + 1]
        (last_before,) = [c for c in self.commits if c.startswith(between.split()[0])]
        return Row(
            row.number, row.word, last_before, linked, "triaged by a test" not in row.cells[0]
        )

    def compared(self, number: int, base: str, head: str) -> str:
        """What the compare page looks up, as `verdict` in dashboards/assets/verdicts.js does."""
        levels = []
        for commit in (base, head):
            row = self._of_commit[self.commits.index(commit)].get(number)
            if row is None or row[1][1] is None:
                return "missing"
            levels.append(row[1][1])
        table = self.verdicts["tables"][self.verdicts["series"][number][1]]
        return str(self.verdicts["words"][int(table[levels[0]][levels[1]])])

    def on_page_of(self, commit: str) -> dict[int, OnCommitPage]:
        """By the number of the series."""
        return {
            number: OnCommitPage(self.commits[row[2]] if row[2] >= 0 else None, row[4], row[5])
            for number, row in self._of_commit[self.commits.index(commit)].items()
        }

    def _data(self, name: str) -> Any:
        text = (self.folder / "data" / name).read_text()
        return json.loads(text[text.index("= ", text.index("]")) + 2 : text.rindex(";")])


class _Row:
    def __init__(self) -> None:
        self.word, self.number = "", -1
        self.commits: list[str] = []
        self.cells: list[str] = []


class _Page(HTMLParser):
    """The list and the grids of an overview, and the list of series of a metric's page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.heading = ""
        self.rows: list[_Row] = []
        self.cells: list[tuple[str, str, str]] = []
        self.series: dict[int, str] = {}
        self._table = self._title = ""
        self._in_heading = False
        self._number = -1
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        kind = found.get("class", "")
        self._in_heading = tag == "h1" or (self._in_heading and tag not in ("p", "h2"))
        if tag == "table":
            self._table = kind
        elif self._table == "changes" and tag == "tr":
            self.rows.append(_Row())
        elif self._table == "changes" and tag == "td":
            self.rows[-1].cells.append("")
        elif self._table == "changes" and tag == "a":
            if match := re.search(r"#k=(\d+)", found["href"]):
                self.rows[-1].number = int(match[1])
            else:
                self.rows[-1].commits.append(found["href"].split("/")[1][:8])
        elif self._table == "grid" and tag == "td":
            self._title = found.get("title", "")
        elif self._table == "grid" and tag == "a":
            page, _, place = found["href"].removeprefix("metric/").partition("#s=")
            self.cells.append((page, place, self._title))
        elif self._table == "series-list" and tag == "input":
            self._number = int(found["data-number"])
        if kind.startswith("verdict "):
            word = kind.removeprefix("verdict ")
            if self._table == "changes":
                self.rows[-1].word = word
            elif self._table == "series-list":
                self.series[self._number] = word

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self.rows = [row for row in self.rows if row.cells]
            self._table = ""
        self._in_heading = self._in_heading and tag != "h1"

    def handle_data(self, data: str) -> None:
        if self._in_heading:
            self.heading += data
        if self._table == "changes" and self.rows and self.rows[-1].cells:
            self.rows[-1].cells[-1] += data
