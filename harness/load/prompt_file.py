"""Prompts of one's own: JSON Lines, ShareGPT's JSON, or a Hugging Face data set on disk."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from engines.openai.request_body import Prompt
from workloads.files.regular_file import open_regular, read_regular

_MOST_BYTES = 2 << 30
_TEXTS = ("prompt", "text", "question", "instruction", "input")
_CHATS = ("messages", "conversations", "conversation")
_ROLES = {"human": "user", "gpt": "assistant"}


def read_prompts(path: Path) -> list[Prompt]:
    """All of a file, or of the ``.arrow`` and ``.parquet`` files of a folder. Raises ValueError.

    A row is a text, or has one of the fields ``prompt``, ``text``, ``question``, ``instruction``,
    ``input``, ``messages``, ``conversations``; rows without any are left out.
    """
    try:
        found = [each for row in _rows(path) if (each := _prompt(row))]
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"--prompts {path}: {error}") from None
    if not found:
        fields = ", ".join((*_TEXTS, *_CHATS))
        raise ValueError(f"--prompts {path}: no row has a text in any of {fields}")
    return found


def _rows(path: Path) -> Iterator[Any]:
    if path.is_dir():
        files = [each for kind in ("arrow", "parquet") for each in sorted(path.rglob(f"*.{kind}"))]
        for each in files:
            yield from _table_rows(each)
    elif path.suffix in (".arrow", ".parquet"):
        yield from _table_rows(path)
    elif path.suffix == ".json":
        yield from json.loads(read_regular(path, _MOST_BYTES))
    else:
        lines = read_regular(path, _MOST_BYTES).decode().splitlines()
        yield from (json.loads(line) for line in lines if line.strip())


def _table_rows(path: Path) -> Iterable[Any]:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    try:
        with open_regular(path, _MOST_BYTES) as file:
            if path.suffix == ".parquet":
                rows: list[Any] = pq.read_table(file).to_pylist()
            else:
                rows = pa.ipc.open_stream(file).read_all().to_pylist()
    except pa.ArrowException as error:
        raise ValueError(f"{path.name} is no {path.suffix} file: {error}") from None
    return rows


def _prompt(row: Any) -> Prompt:
    """ "" for none."""
    if isinstance(row, str):
        return row
    if not isinstance(row, dict):
        return ""
    for name in _CHATS:
        if isinstance(value := row.get(name), (list, tuple)) and (said := _messages(value)):
            return said
    return next((row[name] for name in _TEXTS if isinstance(row.get(name), str)), "")


def _messages(turns: Sequence[Any]) -> list[dict[str, str]]:
    found = []
    for turn in turns:
        if not isinstance(turn, dict):
            return []
        role = turn.get("role") or turn.get("from") or ""
        content = turn.get("content") or turn.get("value") or ""
        if isinstance(content, str) and isinstance(role, str):
            found.append({"role": _ROLES.get(role, role), "content": content})
    while found and found[-1]["role"] != "user":
        found.pop()
    return found
