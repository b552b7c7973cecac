"""Recorded request traces: what the formats have in common. Each is a file beside this one."""

import re
from typing import NamedTuple

from workloads.recipe.limits import MAX_TOKENS


class TraceError(ValueError):
    """A trace cannot be used; the message says which line, what was expected and what to do."""


class TraceRow(NamedTuple):
    """A request as a trace has it: ``nanoseconds`` from any moment, lengths in tokens.

    ``hash_ids``: its prompt's blocks of 512 tokens, the last one maybe shorter; equal ids stand
    for equal tokens. Empty where the format has none.
    """

    nanoseconds: int
    prompt_len: int
    output_len: int
    hash_ids: tuple[int, ...] = ()


def parse_tokens(column: str, text: str) -> int:
    """A length in tokens. Raises ValueError with what was expected and found."""
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= MAX_TOKENS:
        raise ValueError(
            f"expected {column} to be an integer from 1 to {MAX_TOKENS}, found {text[:60]!r}"
        )
    return int(text)


def split_row(line: str, num_columns: int) -> list[str]:
    """The cells of a line of a CSV file without quotes. Raises ValueError."""
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != num_columns:
        raise ValueError(f"expected {num_columns} columns, found {len(cells)}")
    return cells
