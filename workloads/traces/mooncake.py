"""The Mooncake traces (github.com/kvcache-ai/Mooncake): requests and what their prompts share.

A line is a JSON object: ``timestamp`` in ms, ``input_length`` and ``output_length`` in tokens,
``hash_ids`` of the prompt's 512-token blocks. An id stands for a block and all before it.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from workloads.files.whole_file import replacing
from workloads.recipe.limits import MAX_SECONDS, MAX_TOKENS
from workloads.recipe.spec import reason
from workloads.schedule import Schedule
from workloads.traces import TraceRow

BLOCK_TOKENS = 512

_MAX_HASH_ID = 2**62
_MOST_MILLISECONDS = MAX_SECONDS * 1000

TraceBlock = tuple[tuple[int, int, int], ...]
"""What a block is made of: (stream, first token, tokens), one after the other."""


class _Line(msgspec.Struct):
    timestamp: float
    input_length: int
    output_length: int
    hash_ids: tuple[int, ...]


def parse_mooncake_row(line: str) -> TraceRow:
    """A line of the file. Raises ValueError with what was expected and found."""
    try:
        found = msgspec.json.decode(line, type=_Line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(
            "expected timestamp, input_length, output_length and hash_ids in JSON: "
            f"{reason(error)[:120]}"
        ) from None
    for name in ("input_length", "output_length"):
        value = getattr(found, name)
        if not 1 <= value <= MAX_TOKENS:
            raise ValueError(
                f"expected {name} to be an integer from 1 to {MAX_TOKENS}, found {value!s:.60}"
            )
    if not 0 <= found.timestamp <= _MOST_MILLISECONDS:
        raise ValueError(
            f"expected timestamp to be from 0 to {_MOST_MILLISECONDS:g} ms, "
            f"found {found.timestamp:g}"
        )
    num_blocks = -(-found.input_length // BLOCK_TOKENS)
    if len(found.hash_ids) != num_blocks:
        raise ValueError(
            f"expected {num_blocks} hash_ids for {found.input_length} tokens, "
            f"found {len(found.hash_ids)}"
        )
    if not all(0 <= hash_id < _MAX_HASH_ID for hash_id in found.hash_ids):
        raise ValueError("expected hash_ids to be integers from 0 to 2**62 - 1, found another")
    nanoseconds = round(found.timestamp * 1e6)
    return TraceRow(nanoseconds, found.input_length, found.output_length, found.hash_ids)


def write_mooncake(schedule: Schedule, path: Path | str) -> None:
    """Write the requests as such a trace, whole or not at all. Raises OSError.

    Times go to the millisecond. Tokens per step, the cap on concurrency, turns, priorities and
    what stops a request have no place in the format.
    """
    with replacing(Path(path)) as temporary, temporary.open("wb") as file:
        for line in _lines(schedule):
            file.write(f"{json.dumps(line)}\n".encode())


def _lines(schedule: Schedule) -> Iterator[dict[str, object]]:
    ids: dict[tuple[int, TraceBlock], int] = {}
    for i in range(schedule.num_requests):
        hash_ids, parent = [], -1
        for block in _blocks(schedule.prompt_segments(i)):
            parent = ids.setdefault((parent, block), len(ids))
            hash_ids.append(parent)
        yield {
            "timestamp": round(float(schedule.arrival_seconds[i]) * 1000),
            "input_length": int(schedule.prompt_lens[i]),
            "output_length": int(schedule.output_lens[i]),
            "hash_ids": hash_ids,
        }


def _blocks(segments: Iterable[tuple[int, int]]) -> Iterator[TraceBlock]:
    """Cut a prompt into blocks; the last one may be shorter."""
    block: list[tuple[int, int, int]] = []
    room = BLOCK_TOKENS
    for stream, tokens in segments:
        first = 0
        while first < tokens:
            taken = min(room, tokens - first)
            block.append((stream, first, taken))
            first += taken
            room -= taken
            if room == 0:
                yield tuple(block)
                block, room = [], BLOCK_TOKENS
    if block:
        yield tuple(block)
