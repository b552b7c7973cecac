"""Reading recorded request traces: the Azure LLM inference traces of 2023 and 2024."""

import math
import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from workloads.lengths import MAX_TOKENS

AZURE_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")

_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?(?:\+00:00|Z)?"
)
_EPOCH = datetime(1970, 1, 1)


class TraceError(ValueError):
    """A trace cannot be used; the message says which line, what was expected and what to do."""


class TraceRequests(NamedTuple):
    """A window of a trace, in order of arrival.

    ``prompt_lens`` and ``output_lens`` int32 ``[N]`` tokens, ``arrival_seconds`` float64 ``[N]``
    from the window's start, ``bad_rows`` the rows of the whole file that were left out.
    """

    prompt_lens: NDArray[np.int32]
    output_lens: NDArray[np.int32]
    arrival_seconds: NDArray[np.float64]
    bad_rows: int


class AzureTrace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An Azure trace and the part of it to use.

    ``start_seconds`` after the trace's earliest request the window opens, ``duration_seconds``
    later it closes (None: never). Gaps are multiplied by ``time_scale``, so 0.5 is twice the
    load. ``max_requests`` keeps that many from the window's start.
    """

    path: str
    start_seconds: float = 0.0
    duration_seconds: float | None = None
    time_scale: float = 1.0
    max_requests: int | None = None
    skip_bad_rows: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.start_seconds < math.inf:
            raise ValueError(f"start_seconds {self.start_seconds:g} must be 0 or more")
        if self.duration_seconds is not None and not 0 < self.duration_seconds < math.inf:
            raise ValueError(f"duration_seconds {self.duration_seconds:g} must be above 0")
        if not 0 < self.time_scale < math.inf:
            raise ValueError(f"time_scale {self.time_scale:g} must be above 0")
        if self.max_requests is not None and self.max_requests < 1:
            raise ValueError(f"max_requests {self.max_requests} must be 1 or more")

    def read(self) -> TraceRequests:
        """The window's requests. Raises TraceError for a bad row, file, header or empty window."""
        rows, bad_rows = _read_rows(Path(self.path), self.skip_bad_rows)
        nanoseconds, prompt_lens, output_lens = zip(
            *sorted(rows, key=lambda row: row[0]), strict=True
        )
        first = nanoseconds[0]
        seconds = np.array([(each - first) / 1e9 for each in nanoseconds])
        end = (
            math.inf
            if self.duration_seconds is None
            else self.start_seconds + self.duration_seconds
        )
        low, high = np.searchsorted(seconds, [self.start_seconds, end])
        if low == high:
            raise TraceError(
                f"{self.path}: no request between {self.start_seconds:g} s and {end:g} s; the "
                f"trace covers 0 s to {seconds[-1]:g} s, so choose a window inside that"
            )
        window = slice(
            low, high if self.max_requests is None else min(high, low + self.max_requests)
        )
        return TraceRequests(
            np.array(prompt_lens[window], np.int32),
            np.array(output_lens[window], np.int32),
            (seconds[window] - self.start_seconds) * self.time_scale,
            bad_rows,
        )


class _Row(NamedTuple):
    nanoseconds: int
    prompt_len: int
    output_len: int


def _read_rows(path: Path, skip_bad_rows: bool) -> tuple[list[_Row], int]:
    """All good rows in the file's order, never none, and the number of bad ones."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except FileNotFoundError:
        raise TraceError(
            f"{path}: there is no such file; give the path of an Azure trace"
        ) from None
    except OSError as error:
        raise TraceError(f"{path}: the trace cannot be read: {error.strerror}") from None
    header, *lines = text.rstrip().split("\n")
    if not text.strip():
        raise TraceError(f"{path}: the file is empty; give the path of an Azure trace")
    if tuple(name.strip() for name in header.split(",")) != AZURE_COLUMNS:
        raise TraceError(
            f"{path} line 1: expected the header {','.join(AZURE_COLUMNS)}, found {header[:60]!r}; "
            "give the path of an Azure trace"
        )
    rows = []
    for number, line in enumerate(lines, start=2):
        try:
            rows.append(_parse_row(line))
        except ValueError as error:
            if not skip_bad_rows:
                raise TraceError(
                    f"{path} line {number}: {error}; pass --skip-bad-rows to leave such rows out"
                ) from None
    if not rows:
        raise TraceError(f"{path}: the file has no usable row; give the path of an Azure trace")
    return rows, len(lines) - len(rows)


def _parse_row(line: str) -> _Row:
    columns = line.split(",")
    if len(columns) != len(AZURE_COLUMNS):
        raise ValueError(f"expected {len(AZURE_COLUMNS)} columns, found {len(columns)}")
    timestamp, prompt_len, output_len = columns
    return _Row(
        _parse_timestamp(timestamp.strip()),
        _parse_tokens("ContextTokens", prompt_len.strip()),
        _parse_tokens("GeneratedTokens", output_len.strip()),
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


def _parse_tokens(column: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= MAX_TOKENS:
        raise ValueError(
            f"expected {column} to be an integer from 1 to {MAX_TOKENS}, found {text[:60]!r}"
        )
    return int(text)
