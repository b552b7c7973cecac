"""Reading somebody's TOML in bounded time."""

import re
import tomllib
from pathlib import Path
from typing import Any

from workloads.files.regular_file import read_regular

MOST_TOML_BYTES = 2**20
_MOST_PARTS = 32

# Each alternative takes what has no end up to the line's, so each character is looked at once.
_TOKEN = re.compile(
    r"""\#[^\n]*+ | "(?:[^"\\\n]|\\.)*+"? | '[^'\n]*+'? | [\w-]++ | [ \t]++ | \.++ | .""",
    re.DOTALL | re.VERBOSE,
)
_BETWEEN_KEYS = frozenset("=,[]{}\n")


def read_toml_table(path: Path) -> dict[str, Any]:
    """The table of a TOML file. Raises OSError and as `parsed_toml`."""
    return parsed_toml(read_regular(path, MOST_TOML_BYTES).decode())


def parsed_toml(text: str) -> dict[str, Any]:
    """The table of such a file's text. Raises ValueError or RecursionError, none in a sentence.

    A key of 100,000 parts would keep tomllib busy for minutes: its time grows with their square.
    """
    parts = 1
    for token in _TOKEN.finditer(text):
        if token[0] == ".":
            parts += 1
            if parts > _MOST_PARTS:
                raise ValueError(f"a key of more than {_MOST_PARTS} parts")
        elif token[0] in _BETWEEN_KEYS:
            parts = 1
    return tomllib.loads(text)
