"""How surely a few samples tell where their median lies."""

from collections.abc import Sequence
from math import comb

_TAIL = 0.025
"""Of the 95 % interval, at either end."""


def median_interval(samples: Sequence[float | None]) -> tuple[float, float] | None:
    """The 95 % interval of a median by order statistics, free of any distribution.

    Needs six samples; None below. Source: the sign test, P(Binomial(n, 1/2) < k) <= 2.5 %.
    """
    known = sorted(sample for sample in samples if sample is not None)
    n, tail, rank = len(known), 0, 0
    while rank < n and (tail := tail + comb(n, rank)) <= _TAIL * 2**n:
        rank += 1
    return (known[rank - 1], known[n - rank]) if rank else None
