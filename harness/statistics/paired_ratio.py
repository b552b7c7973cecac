"""Paired ratios with their intervals, Holm's correction, and how many rounds an effect needs."""

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from harness.statistics.robust_location import fit, likelihood_ratio, location_interval, reference

ALPHA = 0.015
"""Highest chance of any wrong verdict in one family of comparisons."""
POWER = 0.8
MIN_ROUNDS = 7
"""Fewer pairs give figures, but no verdict."""
FEWEST_PAIRS = 3
"""Fewer pairs give no interval."""

_OUTLIERS = 1.08
_FEW = 26.0
_FEW_OF_MANY = 7.5
"""Of `minimum_detectable_effect`: fitted to simulated runs of 7 to 64 rounds."""


class Ratio(NamedTuple):
    """Candidate / baseline. ``p`` two-sided, uncorrected; ``mde`` relative; ``rounds`` paired.

    ``sd_log`` is the spread of the paired log ratios without their outliers.
    """

    ratio: float
    ci95: tuple[float, float]
    p: float
    mde: float
    sd_log: float
    rounds: int


def paired_ratio(baseline: ArrayLike, candidate: ArrayLike, comparisons: int = 1) -> Ratio:
    """Ratio of two cells' samples, float ``[rounds]`` in one order, NaN where a round has none.

    Estimate, 95 % interval and p-value come from one likelihood over the log ratios
    (`harness.statistics.robust_location`). ``mde`` holds for one of ``comparisons``. Raises
    ValueError for unequal lengths, samples that are not positive, or fewer than 3 pairs.
    """
    before, after = np.asarray(baseline, np.float64), np.asarray(candidate, np.float64)
    if before.shape != after.shape:
        raise ValueError(
            f"Baseline has {before.size} rounds and candidate {after.size}: "
            "give one sample a round, NaN where there is none."
        )
    both = ~(np.isnan(before) | np.isnan(after))
    before, after = before[both], after[both]
    if before.size < FEWEST_PAIRS:
        raise ValueError(
            f"Only {before.size} rounds have a sample of both cells and an interval needs "
            f"{FEWEST_PAIRS}: run at least {MIN_ROUNDS} rounds."
        )
    if min(before.min(), after.min()) <= 0:
        raise ValueError(
            "A ratio needs samples above 0 and this metric has others: decide by another metric."
        )
    logs = np.log(after / before)
    fitted, null = fit(logs), reference(logs.size)
    low, high = location_interval(logs)
    sd_log = float(fitted.scale) / null.scale
    return Ratio(
        ratio=math.exp(fitted.location),
        ci95=(math.exp(low), math.exp(high)),
        p=null.p_value(float(likelihood_ratio(logs))),
        mde=minimum_detectable_effect(sd_log, logs.size, comparisons),
        sd_log=sd_log,
        rounds=logs.size,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for being one of several, in the order given (Holm 1979)."""
    smallest_first = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(smallest_first):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def minimum_detectable_effect(sd_log: float, rounds: int, comparisons: int = 1) -> float:
    """Smallest relative change found with 80 % power at level `ALPHA` / ``comparisons``.

    exp(k (t_alpha/2 + t_power) · sd_log / √rounds) - 1 with ``rounds`` - 1 degrees of freedom
    (Bloom 1995), ``sd_log`` as in `Ratio`; 2 rounds at least. k is what a spread without outliers
    leaves out where one sample in ten is one, and what it costs to find them among few: fitted to
    the simulation in tests/harness/statistics/test_power_simulated.py.
    """
    from scipy.special import stdtrit

    wanted = stdtrit(rounds - 1, 1 - ALPHA / comparisons / 2) + stdtrit(rounds - 1, POWER)
    few = (_FEW + _FEW_OF_MANY * math.log(comparisons)) / rounds**2
    return math.expm1((_OUTLIERS + few) * float(wanted) * sd_log / math.sqrt(rounds))


class Estimate(Protocol):
    """A ratio with its interval: a `Ratio`, or a comparison that was made of one."""

    @property
    def ratio(self) -> float:
        """Candidate / baseline."""
        ...

    @property
    def ci95(self) -> tuple[float, float]:
        """Its 95 % interval."""
        ...

    @property
    def rounds(self) -> int:
        """Pairs behind it."""
        ...


def is_precise(estimate: Estimate, half_width: float) -> bool:
    """Whether the interval reaches no further than ``half_width`` (0.01 is 1 %) on average."""
    low, high = estimate.ci95
    return estimate.rounds >= MIN_ROUNDS and (high - low) / 2 <= half_width * estimate.ratio
