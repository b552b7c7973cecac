"""At which places a step may lie, by the likelihoods of all of them, and what would tell more."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.statistics.mixture import FloatArray
from harness.tracking.detect.evidence import Steps

CREDIBLE = 0.99
"""Share of the likelihood that a range holds; what that covers: `benchmarks/detectors.py`."""


class PairRerun(NamedTuple):
    """A re-run of points: log ratio of ``after`` to ``before`` (indices), its standard error.

    ``night``: the newest point when it was taken; it counts from that night on.
    """

    before: int
    after: int
    rise: float
    error: float
    night: int


class Range(NamedTuple):
    """The likeliest ``place``, and ``low`` to ``high``, which hold the right one almost surely.

    ``split``: two points whose re-run would narrow the range most; None where it holds one place,
    or all such pairs have been run again.
    """

    place: int
    low: int
    high: int
    split: tuple[int, int] | None


def with_reruns(
    seen: Steps, reruns: Sequence[PairRerun]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Gain, rise and its error when the re-runs across a place are taken in.

    Near its best rise the likelihood of the nights falls as a parabola; a re-run's is one too, so
    the best rise of both is the mean weighted by precision.
    """
    precision, weighted = np.zeros_like(seen.gain), np.zeros_like(seen.gain)
    for run in reruns:
        across = (run.before < seen.first) & (seen.first <= run.after)
        precision += across / run.error**2
        weighted += across * run.rise / run.error**2
    own = 1 / seen.error**2
    rise = (own * seen.rise + weighted) / (own + precision)
    fallen = own * (rise - seen.rise) ** 2 / 2
    total = seen.gain + weighted * rise - precision * rise**2 / 2 - fallen
    none = precision == 0
    return (
        np.where(none, seen.gain, total),
        np.where(none, seen.rise, rise),
        1 / np.sqrt(own + precision),
    )


def locate(
    first: NDArray[np.int64], score: FloatArray, best: int, reruns: Sequence[PairRerun]
) -> Range:
    """Of places ``first``, ascending, by the log-likelihood of each; -inf where there is no step.

    The range grows from the index ``best``, each time by the likelier neighbour.
    """
    share = np.exp(score - score.max())
    share /= share.sum()
    low = high = best
    while share[low : high + 1].sum() < CREDIBLE:
        left = share[low - 1] if low else -1.0
        right = share[high + 1] if high + 1 < len(share) else -1.0
        low, high = (low - 1, high) if left > right else (low, high + 1)
    inside = slice(low, high + 1)
    known = {(run.before, run.after) for run in reruns}
    split = _split(first[inside], share[inside], known)
    return Range(int(first[best]), int(first[low]), int(first[high]), split)


def _split(
    first: NDArray[np.int64], share: FloatArray, known: Collection[tuple[int, int]]
) -> tuple[int, int] | None:
    """Between which two points the step lies with a chance nearest to a half."""
    share = share / share.sum()
    total = np.cumsum(share)
    apart = {
        (int(first[one]) - 1, int(first[other])): abs(total[other] - total[one] + share[one] - 0.5)
        for one in range(len(first))
        for other in range(one, len(first))
        if other - one + 1 < len(first)
    }
    return min((pair for pair in apart if pair not in known), key=apart.__getitem__, default=None)
