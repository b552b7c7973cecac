"""JSON as asv has it: NaN and Infinity pass, every file says its version, some have comments."""

import json
import re
from pathlib import Path
from typing import Any

from harness.files import StoreError
from harness.format import excerpt
from workloads.files.regular_file import read_regular

MOST_JSON_BYTES = 32 * 2**20

# What has no end is taken to the text's end: looked for anew from each later quote, it would cost
# the square of the text's length.
_STRING = r'"(?:\\.|[^"\\])*+"?'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")


def read_json(path: Path, version: int, *, comments: bool = False) -> dict[str, Any]:
    """Read an object whose ``version`` must be ``version``; returned without it.

    ``comments``: `//`, `/* */` and a comma after the last element are allowed. The rest of JSON5,
    which asv takes in its configuration, is not. Raises StoreError.
    """
    try:
        text = read_regular(path, MOST_JSON_BYTES).decode()
        # Not msgspec: it refuses NaN and Infinity, and asv writes both.
        value = json.loads(without_comments(text) if comments else text)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is cut short or not JSON: {error}") from error
    if not isinstance(value, dict) or "version" not in value:
        raise StoreError(f"{path} says no version, as each of asv's files does")
    if (found := value.pop("version")) != version:
        raise StoreError(
            f"{path} has asv's format {excerpt(found)}, this gcbench reads {version}; "
            "`asv update` brings older files up to date"
        )
    return value


def without_comments(text: str) -> str:
    """``text`` with comments and last commas blanked out; lines and strings stay as they are."""

    def blank(found: re.Match[str]) -> str:
        is_kept = found[0][0] == '"' or (found[0][:2] == "/*" and found[0][-2:] != "*/")
        return found[0] if is_kept else re.sub(r"[^\n]", " ", found[0])

    return _LAST_COMMA.sub(blank, _COMMENT.sub(blank, text))
