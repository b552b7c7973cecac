"""Stalls: steps that take far longer under one of two codes than the same steps under the other.

What both do in the same step, a prefill or a block that is full, is no stall of either. What only
the machine does falls on either by chance. So the time that stalls take in a turn may as well
have been the other's: a randomisation test, which throws a coin for each turn (Fisher 1935).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.statistics.mixture import FloatArray
from harness.statistics.paired_ratio import ALPHA, MIN_ROUNDS
from harness.statistics.verdict import Verdict

LEAST_STALL_SECONDS = 5e-4
"""A step that is longer by less stalls nobody; it is longer by half a median step at least."""
_PART_OF_A_STEP = 0.5
_PART_OF_TOLERANCE = 0.5
_DRAWS = 20_000
_FEW = 20
_Z_95 = 1.96


class Stalls(NamedTuple):
    """What stalls add to the time of ``steps`` steps a side, in ``rounds`` rounds.

    ``before`` and ``after``: stalls that the other does not have; ``longest_before`` and
    ``longest_after`` the largest, seconds longer than the other. ``share``: time in stalls, after
    less before, over all time before; ``ci95`` its interval. ``p`` two-sided, uncorrected.
    """

    before: int
    after: int
    longest_before: float
    longest_after: float
    steps: int
    rounds: int
    share: float
    ci95: tuple[float, float]
    p: float

    def verdict(self, p_adjusted: float, tolerance: float) -> Verdict:
        """A significant share is `worse` or `better`, however small.

        `same` within half the tolerance: a tail of that size would move the mean by as much.
        """
        low, high = self.ci95
        if self.rounds < MIN_ROUNDS:
            return "inconclusive"
        if p_adjusted < ALPHA:
            return "worse" if self.share > 0 else "better"
        return "same" if max(-low, high) <= _PART_OF_TOLERANCE * tolerance else "inconclusive"


def compare_stalls(rounds: Sequence[tuple[FloatArray, FloatArray]], turn: int) -> Stalls:
    """Of rounds of (before, after), seconds of each step ``[steps]``, that took turns of ``turn``.

    Where the two have not the same number of steps, each is held against its own median step.
    """
    counts, longest = np.zeros(2, np.int64), np.zeros(2)
    turns: list[FloatArray] = []
    for before, after in rounds:
        both = _longer(before, after)
        for side, longer in enumerate(both):
            is_stall = longer > 0
            # Two long steps on end are one stall.
            counts[side] += np.count_nonzero(np.diff(is_stall, prepend=False) & is_stall)
            longest[side] = max(longest[side], longer.max(initial=0.0))
        lost, added = (_by_turn(longer, turn) for longer in both)
        turns.extend([added - lost] if len(added) == len(lost) else [added, -lost])
    differences = np.concatenate(turns)
    total = sum(float(before.sum()) for before, _ in rounds)
    share = float(differences.sum()) / total
    # The sum of independent turns, most of them 0, has about the variance of its squares' sum.
    reach = _Z_95 * math.sqrt(float(np.square(differences).sum())) / total
    return Stalls(
        before=int(counts[0]),
        after=int(counts[1]),
        longest_before=float(longest[0]),
        longest_after=float(longest[1]),
        steps=sum(min(len(before), len(after)) for before, after in rounds),
        rounds=len(rounds),
        share=share,
        ci95=(share - reach, share + reach),
        p=_p_value(differences),
    )


def _longer(before: FloatArray, after: FloatArray) -> tuple[FloatArray, FloatArray]:
    """By how much each side's stalls are longer; 0 where there is none."""
    if len(before) == len(after):
        longer = before - after, after - before
    else:
        longer = before - np.median(before), after - np.median(after)
    least = max(LEAST_STALL_SECONDS, _PART_OF_A_STEP * float(np.median(before)))
    one, other = (np.where(each > least, each, 0.0) for each in longer)
    return one, other


def _by_turn(seconds: FloatArray, turn: int) -> FloatArray:
    return np.add.reduceat(seconds, np.arange(0, len(seconds), turn))


def _p_value(differences: FloatArray) -> float:
    """Share of coin throws, one a turn, that give a sum at least as far from 0.

    Where hardly one of those thrown does, at most what Hoeffding (1963) leaves of all throws.
    """
    sizes = np.abs(differences[differences != 0])
    if not len(sizes):
        return 1.0
    coins = np.random.default_rng(len(sizes)).integers(0, 2, (_DRAWS, len(sizes)), np.int8)
    sums = np.abs((2.0 * coins - 1.0) @ sizes)
    total = abs(float(differences.sum()))
    beyond = int(np.count_nonzero(sums >= total * (1 - 1e-12)))
    counted = (1 + beyond) / (1 + _DRAWS)
    if beyond >= _FEW:
        return counted
    return min(counted, 2 * math.exp(-(total**2) / (2 * float(np.square(sizes).sum()))))
