"""How far each message is from the one before it: the least bytes to insert, delete or replace."""

import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

ALL_UP_TO = 1 << 16
"""Bytes of the longest message up to which every pair is compared."""

EVERY = 7
"""Beyond, one pair in so many: a prime, for blocks of the KV cache are given out every 16 steps."""

LONGEST = 1 << 20
"""Bytes beyond which a message is not compared."""


class Distances(NamedTuple):
    """Of consecutive messages. ``first``: of the first two; ``others``: of the other pairs.

    One pair in ``every`` was looked at; ``num_too_long`` of these were not compared.
    """

    first: int | None
    others: list[int]
    every: int
    num_too_long: int


def edit_distances(sizes: Sequence[int], message: Callable[[int], bytes]) -> Distances:
    """Levenshtein distances between ``message(n)`` and the next, ``sizes`` being their bytes.

    Raises ValueError where this interpreter has no rapidfuzz.
    """
    try:
        from rapidfuzz.distance.Levenshtein import distance
    except ModuleNotFoundError:
        raise ValueError(
            "edit distances of messages need rapidfuzz, which this interpreter lacks: run "
            f"{sys.executable} -m pip install rapidfuzz"
        ) from None
    every = 1 if max(sizes, default=0) <= ALL_UP_TO else EVERY
    looked_at = range(0, len(sizes) - 1, every)
    compared = [pair for pair in looked_at if max(sizes[pair : pair + 2]) <= LONGEST]
    # The hint only says where to begin: most bytes of two messages are alike.
    found = {pair: distance(message(pair), message(pair + 1), score_hint=64) for pair in compared}
    first = found.pop(0, None)
    return Distances(first, list(found.values()), every, len(looked_at) - len(compared))
