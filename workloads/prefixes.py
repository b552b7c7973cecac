"""How much of each prompt some earlier prompt began with: what a prefix cache could spare."""

import numpy as np

from workloads.requests import Int64Array
from workloads.schedule import Schedule


def seen_before(schedule: Schedule, block_size: int = 16) -> Int64Array:
    """Tokens of each prompt that an earlier prompt begins with, in whole blocks, int64 ``[N]``.

    As for a cache that never evicts and is filled in order of arrival.
    """
    shared = np.zeros(schedule.num_requests, np.int64)
    if not len(schedule.segment_counts):
        return shared
    # A tree of what has been seen. Prompts can part only where a segment of either ends, so a
    # node is where whole segments have led, and of each stream that goes on from there the most
    # tokens seen are enough. Below a new node nothing has been seen.
    children: dict[tuple[int, int, int], int] = {}
    most_seen: dict[tuple[int, int], int] = {}
    for i in range(schedule.num_requests):
        node = in_common = 0
        for stream, tokens in schedule.prompt_segments(i):
            seen = most_seen.get((node, stream), 0)
            in_common += min(tokens, seen)
            most_seen[node, stream] = max(seen, tokens)
            node = children.setdefault((node, stream, tokens), len(children) + 1)
        shared[i] = in_common // block_size * block_size
    return shared
