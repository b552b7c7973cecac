"""A percentile, where there are samples enough to tell it."""

import numpy as np
from numpy.typing import ArrayLike


def percentile_or_none(values: ArrayLike, q: float) -> float | None:
    """The ``q``-th percentile (0 to 100), or None where too few samples lie beyond it to be told.

    Wanted are two samples beyond the true percentile with 99 % confidence: 662 samples for p99,
    6,636 for p99.9, 64 for p90 (Wilks 1941, tolerance limits, second order). The median is exempt.
    """
    array = np.asarray(values, dtype=np.float64)
    n, beyond = array.size, round(min(q, 100 - q) / 100, 12)
    fewer_than_two = (1 - beyond) ** n + n * beyond * (1 - beyond) ** max(n - 1, 0)
    if n == 0 or (q != 50 and fewer_than_two > 0.01):
        return None
    return float(np.percentile(array, q))
