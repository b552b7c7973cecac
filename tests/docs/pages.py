"""README, CONTRIBUTING, CHANGELOG and docs/*.md, read as GitHub reads them."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
)


class CommandLine(NamedTuple):
    """Words that begin with ``gcbench``; ``is_whole`` where they stand in a block of their own."""

    words: str
    is_whole: bool


def name_of(page: Path) -> str:
    """The page's name in reports of tests."""
    return str(page.relative_to(ROOT))


def tokens(page: Path) -> Iterator[Token]:
    """All tokens of a page, those inside a paragraph after the paragraph."""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text()):
        yield token
        yield from token.children or ()


def links(page: Path) -> list[str]:
    """Where the links and pictures of a page lead."""
    found = (token.attrGet("href") or token.attrGet("src") for token in tokens(page))
    return [str(target) for target in found if target]


def anchors(page: Path) -> set[str]:
    """The names by which a page's headings can be linked to."""
    found: dict[str, int] = {}
    names = set()
    parsed = list(MarkdownIt("commonmark").enable("table").parse(page.read_text()))
    for opening, inline in pairwise(parsed):
        if opening.type == "heading_open":
            text = "".join(part.content for part in inline.children or ())
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            count = found[slug] = found.get(slug, -1) + 1
            names.add(f"{slug}-{count}" if count else slug)
    return names


def command_lines(page: Path) -> Iterator[CommandLine]:
    """What a reader might paste: lines of code blocks, and code within sentences."""
    for token in tokens(page):
        if token.type == "fence" and token.info in ("", "sh", "yaml"):
            for line in token.content.replace("\\\n", " ").splitlines():
                if re.match(r"(\w+=\S+ )*gcbench ", line):
                    yield CommandLine(line, True)
        elif token.type == "code_inline" and token.content.startswith("gcbench "):
            yield CommandLine(token.content, False)
