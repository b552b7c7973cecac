"""The noise floor of a machine, from runs of equal cells (A/A)."""

from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from harness.statistics.paired_ratio import minimum_detectable_effect, paired_ratio


class NoiseFloor(msgspec.Struct, frozen=True, kw_only=True):
    """What equal cells differ by, as shares of one.

    ``trial_cv``: standard deviation / mean of one cell's trials, drift and outliers included.
    ``sd_log_ratio``: spread of log ratios paired by round, outliers left out. ``mde``: the minimum
    detectable effect of one comparison, by number of rounds.
    """

    cells: int
    rounds: int
    trial_cv: float
    sd_log_ratio: float
    mde: dict[int, float]


def noise_floor(samples_by_round: ArrayLike) -> NoiseFloor:
    """Noise of equal cells, float ``[rounds, cells]``, NaN where a round has no sample of a cell.

    Raises ValueError for fewer than 2 cells, and what `paired_ratio` raises.
    """
    samples = np.asarray(samples_by_round, dtype=np.float64)
    if samples.ndim != 2 or samples.shape[1] < 2:
        raise ValueError("A noise floor needs the rounds of at least 2 equal cells.")
    pairs = [paired_ratio(a, b) for a, b in combinations(samples.T, 2)]
    sd_log = float(np.sqrt(np.mean([pair.sd_log**2 for pair in pairs])))
    spread = np.nanstd(samples, axis=0, ddof=1) / np.nanmean(samples, axis=0)
    return NoiseFloor(
        cells=samples.shape[1],
        rounds=samples.shape[0],
        trial_cv=float(spread.mean()),
        sd_log_ratio=sd_log,
        mde={rounds: minimum_detectable_effect(sd_log, rounds) for rounds in (7, 14, 28)},
    )
