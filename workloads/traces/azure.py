"""The Azure LLM inference traces of 2023 and 2024 (github.com/Azure/AzurePublicDataset)."""

import re
from datetime import datetime

from workloads.traces import TraceRow, parse_tokens, split_row

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")

_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?(?:\+00:00|Z)?"
)
_EPOCH = datetime(1970, 1, 1)


def parse_azure_row(line: str) -> TraceRow:
    """A line below the header. Raises ValueError with what was expected and found."""
    timestamp, prompt_len, output_len = split_row(line, len(COLUMNS))
    return TraceRow(
        _parse_timestamp(timestamp),
        parse_tokens("ContextTokens", prompt_len),
        parse_tokens("GeneratedTokens", output_len),
    )


def _parse_timestamp(text: str) -> int:
    """Nanoseconds since 1970; by hand, because datetime drops the seventh digit."""
    found = _TIMESTAMP.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        since = datetime.fromisoformat(found[1]) - _EPOCH
    except ValueError:
        raise ValueError(
            f"expected a timestamp such as 2023-11-16 18:15:46.6805900, found {text[:60]!r}"
        ) from None
    return (since.days * 86_400 + since.seconds) * 10**9 + int((found[2] or "").ljust(9, "0"))
