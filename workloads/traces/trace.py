"""A trace and the part of it to use, whatever its format."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import msgspec
import numpy as np

from workloads.files.regular_file import open_regular
from workloads.recipe.limits import MAX_SECONDS
from workloads.requests import NO_SEGMENTS, TRACE_STREAMS, Requests, Segments
from workloads.traces import TraceError, TraceRow, azure, burstgpt, mooncake

_MOST_BYTES = 2 * 2**30
_MOST_LINES = 50_000_000
_MOST_LINE_BYTES = 2**20
"""The longest prompt has 32,768 hash_ids, of up to 19 digits each."""


class Trace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A trace (``.jsonl``: Mooncake; else Azure or BurstGPT, by the header) and a window of it.

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
        if not 0 < self.time_scale <= MAX_SECONDS:
            raise ValueError(
                f"time_scale {self.time_scale:g} must be above 0 and at most {MAX_SECONDS:g}"
            )
        if self.max_requests is not None and self.max_requests < 1:
            raise ValueError(f"max_requests {self.max_requests} must be 1 or more")

    def read(self) -> Requests:
        """The window's requests, times from its start; ``bad_rows`` are those of the whole file.

        Raises TraceError for a bad row, file, header or empty window.
        """
        rows, bad_rows = _read_rows(Path(self.path), self.skip_bad_rows)
        rows.sort(key=lambda row: row.nanoseconds)
        first = rows[0].nanoseconds
        seconds = np.array([(row.nanoseconds - first) / 1e9 for row in rows])
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
        chosen = rows[window]
        return Requests(
            np.array([row.prompt_len for row in chosen], np.int32),
            np.array([row.output_len for row in chosen], np.int32),
            (seconds[window] - self.start_seconds) * self.time_scale,
            _segments(chosen),
            bad_rows=bad_rows,
        )


def _segments(rows: Sequence[TraceRow]) -> Segments:
    """Each block a stream by its id; the last one of a prompt may be cut short."""
    if not rows[0].hash_ids:
        return NO_SEGMENTS
    counts = np.array([len(row.hash_ids) for row in rows], np.int32)
    streams = np.array([hash_id for row in rows for hash_id in row.hash_ids], np.int64)
    lens = np.full(len(streams), mooncake.BLOCK_TOKENS, np.int32)
    lens[np.cumsum(counts) - 1] = [(row.prompt_len - 1) % mooncake.BLOCK_TOKENS + 1 for row in rows]
    return Segments(counts, TRACE_STREAMS + streams, lens)


def _read_rows(path: Path, skip_bad_rows: bool) -> tuple[list[TraceRow], int]:
    """All good rows in the file's order, never none, and the number of bad ones."""
    lines = _read_lines(path)
    parse: Callable[[str], TraceRow] = mooncake.parse_mooncake_row
    if path.suffix.lower() != ".jsonl":
        parse = _row_parser(path, next(lines)[1])
    rows, bad_rows = [], 0
    for number, line in lines:
        try:
            rows.append(parse(line))
        except ValueError as error:
            if not skip_bad_rows:
                raise TraceError(
                    f"{path} line {number}: {error}; pass --axis skip-bad-rows=on to leave "
                    "such rows out"
                ) from None
            bad_rows += 1
    if not rows:
        raise TraceError(f"{path}: the file has no usable row; give the path of a trace")
    return rows, bad_rows


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file by their number, less empty ones at the end. Raises TraceError."""
    last = 0
    try:
        with open_regular(path, _MOST_BYTES) as file:
            for number in count(1):
                line = file.readline(_MOST_LINE_BYTES + 1)
                if not line:
                    break
                if len(line) > _MOST_LINE_BYTES or number > _MOST_LINES:
                    raise TraceError(
                        f"{path} line {number}: at most {_MOST_LINES:,} lines are read, of "
                        f"{_MOST_LINE_BYTES:,} bytes each; give the path of a trace"
                    )
                text = line.decode("utf-8-sig" if number == 1 else "utf-8", "replace").rstrip()
                if text:
                    yield from ((empty, "") for empty in range(last + 1, number))
                    yield number, text
                    last = number
    except FileNotFoundError:
        raise TraceError(f"{path}: there is no such file; give the path of a trace") from None
    except OSError as error:
        raise TraceError(f"{path}: the trace cannot be read: {error.strerror}") from None
    if not last:
        raise TraceError(f"{path}: the file is empty; give the path of a trace")


def _row_parser(path: Path, header: str) -> Callable[[str], TraceRow]:
    columns = tuple(name.strip() for name in header.split(","))
    if columns == azure.COLUMNS:
        return azure.parse_azure_row
    if set(burstgpt.NEEDED) <= set(columns):
        return burstgpt.row_parser(columns)
    raise TraceError(
        f"{path} line 1: expected the header {','.join(azure.COLUMNS)} of an Azure trace, or one "
        f"with {', '.join(burstgpt.NEEDED)} as BurstGPT's, found {header[:60]!r}; give the path "
        "of a trace"
    )
