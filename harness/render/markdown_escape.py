"""Other people's words in GitHub Markdown: shown as they stand, whatever is in them."""

import re

_MARKUP = re.compile(r"[\\`*\[\]<>&|~$]|(?<![^\W_])_|_(?![^\W_])")
_BEGINS_BLOCK = re.compile(r"[-+=#]|\d+[.)]")
# GitHub makes links of these without any markup, and no backslash stops it.
_LINKED = re.compile(r"[@#]|:(?=//)|\bwww(?=\.)", re.IGNORECASE)
_WORD_JOINER = "\u2060"


def escaped(text: str) -> str:
    """``text`` as a paragraph or an item of a list: no markup, link, mention or HTML of it."""
    text = " ".join(text.split())
    return (_WORD_JOINER if _BEGINS_BLOCK.match(text) else "") + escaped_inside(text)


def escaped_inside(text: str) -> str:
    """The same for ``text`` that cannot begin a line: a cell of a table, a title, a caption."""
    escaped = _MARKUP.sub(lambda found: f"\\{found[0]}", " ".join(text.split()))
    return _LINKED.sub(lambda found: f"{found[0]}{_WORD_JOINER}", escaped)


def code_span(text: str) -> str:
    """``text`` as code within a line."""
    text = " ".join(text.split())
    fence = "`" * (_longest_run(text) + 1)
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{padding}{text}{padding}{fence}" if text else ""


def code_block(lines: list[str]) -> str:
    """Lines of code as a block of its own."""
    text = "\n".join(lines)
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
