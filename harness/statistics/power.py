"""How many rounds a change takes to be detectable, and beyond what nobody asks."""

import math

from harness.statistics.paired_ratio import MIN_ROUNDS

MOST_DETECTED = 0.5
"""A larger detectable change is not stated: only that nothing below it would be found."""
MOST_ROUNDS = 200
"""More rounds than these are not stated: nobody waits for them."""


def rounds_needed(change: float, rounds: int, mde: float) -> int:
    """Rounds for a relative change to be detectable, where so many detect ``mde``.

    The detectable effect falls with the root of the rounds, or a little faster.
    """
    needed = rounds * (math.log1p(mde) / math.log1p(change)) ** 2
    return max(MIN_ROUNDS, math.ceil(needed)) if math.isfinite(needed) else MOST_ROUNDS + 1
