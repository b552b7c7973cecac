"""A percentile, where there are samples enough to tell it."""

import numpy as np
from numpy.typing import ArrayLike

_DOUBT = 0.01
"""Chance that fewer than two samples lie beyond a percentile that is told."""


def percentile_or_none(values: ArrayLike, q: float) -> float | None:
    """The ``q``-th percentile (0 to 100), or None where too few samples lie beyond it to be told.

    Wanted are two samples beyond the true percentile with 99 % confidence: 662 samples for p99,
    6,636 for p99.9, 64 for p90 (Wilks 1941, tolerance limits, second order). The median is exempt.
    """
    array = np.asarray(values, dtype=np.float64)
    return float(np.percentile(array, q)) if _can_tell(array.size, q) else None


def fewest_samples(q: float) -> int:
    """How many samples `percentile_or_none` wants for the ``q``-th percentile, 0 < q < 100."""
    most = 1
    while not _can_tell(most, q):
        most *= 2
    return next(n for n in range(most // 2, most + 1) if _can_tell(n, q))


def _can_tell(n: int, q: float) -> bool:
    beyond = round(min(q, 100 - q) / 100, 12)
    fewer_than_two = (1 - beyond) ** n + n * beyond * (1 - beyond) ** max(n - 1, 0)
    return n > 0 and (q == 50 or fewer_than_two <= _DOUBT)
