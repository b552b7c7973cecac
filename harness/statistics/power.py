"""How many rounds a change takes to be detectable, and beyond what nobody asks."""

import math
from bisect import bisect_left

from harness.statistics.paired_ratio import MIN_ROUNDS, minimum_detectable_effect

MOST_DETECTED = 0.5
"""A larger detectable change is not stated: only that nothing below it would be found."""
MOST_ROUNDS = 200
"""More rounds than these are not stated: nobody waits for them."""


def rounds_needed(change: float, rounds: int, mde: float) -> int:
    """Rounds for a relative change to be detectable, where so many detect ``mde``.

    `MOST_ROUNDS` + 1 where those are too few.
    """

    def falls_to(number: int) -> float:
        return _of_spread(rounds) / _of_spread(number)

    enough = range(MIN_ROUNDS, MOST_ROUNDS + 1)
    place = bisect_left(enough, math.log1p(mde) / math.log1p(change), key=falls_to)
    return MIN_ROUNDS + place


def _of_spread(rounds: int) -> float:
    """The logarithm of what is detectable, which is proportional to the spread of a pair."""
    return math.log1p(minimum_detectable_effect(1.0, rounds))
