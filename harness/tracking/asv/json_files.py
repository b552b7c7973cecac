"""JSON as asv has it: NaN and Infinity pass, every file says its version, some have comments."""

import json
import re
from pathlib import Path
from typing import Any

from harness.files import StoreError

_STRING = r'"(?:\\.|[^"\\])*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")


def read_json(path: Path, version: int, *, comments: bool = False) -> dict[str, Any]:
    """Read an object whose ``version`` must be ``version``; returned without it.

    ``comments``: `//`, `/* */` and a comma after the last element are allowed. The rest of JSON5,
    which asv takes in its configuration, is not. Raises StoreError.
    """
    try:
        if path.exists() and not path.is_file():  # opening a pipe would wait for its writer
            raise StoreError(f"{path} is not a file; remove it")
        text = path.read_text(encoding="utf-8")
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
            f"{path} has asv's format {found!r}, this gcbench reads {version}; "
            "`asv update` brings older files up to date"
        )
    return value


def without_comments(text: str) -> str:
    """``text`` with comments and last commas blanked out; lines and strings stay as they are."""

    def blank(found: re.Match[str]) -> str:
        return found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0])

    return _LAST_COMMA.sub(blank, _COMMENT.sub(blank, text))
