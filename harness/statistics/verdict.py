"""From ratios to verdicts."""

from collections.abc import Sequence
from typing import Literal

from harness.statistics.paired_ratio import ALPHA, MIN_ROUNDS, Ratio, holm

Verdict = Literal["better", "worse", "same", "inconclusive"]

LEAST_CHANGE = 0.75
"""Part of the tolerance below which no change is called better or worse: at 2 % it is 1.5 %, half
the 3 % that 14 rounds are to find, where a miss and a false find are equally far away."""


def decide(
    ratios: Sequence[Ratio],
    direction: Literal["higher", "lower"],
    tolerance: float = 0.02,
    also: Sequence[float] = (),
) -> list[Verdict]:
    """A verdict on each candidate of one family, all compared with one baseline in one metric.

    ``direction`` says which is better. ``same``: the 95 % interval lies within 1 ± ``tolerance``,
    whatever the p-value; else ``better`` or ``worse`` where Holm's p is below `ALPHA` and the
    change at least `LEAST_CHANGE` of the tolerance. All else, and fewer than `MIN_ROUNDS` pairs,
    is ``inconclusive``. ``also``: p-values of the family that are judged elsewhere.
    Raises ValueError for any other direction.
    """
    if direction not in ("higher", "lower"):
        raise ValueError(
            f"A metric that is better {direction!r} gives no verdict: "
            "decide by one that is better higher or lower."
        )
    adjusted = holm([*(ratio.p for ratio in ratios), *also])
    return [_verdict(r, p, direction, tolerance) for r, p in zip(ratios, adjusted, strict=False)]


def _verdict(ratio: Ratio, p: float, direction: str, tolerance: float) -> Verdict:
    low, high = ratio.ci95
    if ratio.rounds < MIN_ROUNDS:
        return "inconclusive"
    if 1 - tolerance <= low and high <= 1 + tolerance:
        return "same"
    if p >= ALPHA or abs(ratio.ratio - 1) < LEAST_CHANGE * tolerance:
        return "inconclusive"
    return "better" if (ratio.ratio > 1) == (direction == "higher") else "worse"
