"""The BurstGPT traces (github.com/HPMLL/BurstGPT): requests to a university's ChatGPT and GPT-4."""

import re
from collections.abc import Callable

from workloads.traces import TraceRow, parse_tokens, split_row

NEEDED = ("Timestamp", "Request tokens", "Response tokens")
"""Columns that are read, wherever they stand; other columns are passed over."""


def row_parser(columns: tuple[str, ...]) -> Callable[[str], TraceRow]:
    """What reads a line below a header of these columns."""
    places = [columns.index(name) for name in NEEDED]

    def parse_row(line: str) -> TraceRow:
        cells = split_row(line, len(columns))
        timestamp, prompt_len, output_len = (cells[place] for place in places)
        if output_len == "0":
            raise ValueError("0 Response tokens, which is a request that failed")
        return TraceRow(
            _parse_seconds(timestamp),
            parse_tokens("Request tokens", prompt_len),
            parse_tokens("Response tokens", output_len),
        )

    return parse_row


def _parse_seconds(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,10})(?:\.([0-9]{1,18}))?", text)
    if found is None:
        raise ValueError(f"expected Timestamp to be seconds such as 45.5, found {text[:60]!r}")
    return int(found[1]) * 10**9 + int((found[2] or "")[:9].ljust(9, "0"))
