"""Noise of which one sample in ten is an accident, and what is fitted under it by EM.

A sample is normal or, with probability 0.1, normal with ten times the spread. Squared deviations
are ``[..., n]``, in variances of the ordinary samples where a density or a weight is asked for.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_SHARE = 0.1
_SPREAD = 10.0
_NARROWING = 1 - _SPREAD**-2


class Spread(NamedTuple):
    """Squared deviations ``[..., n]`` and the variance of the ordinary samples, ``[..., 1]``."""

    squares: FloatArray
    variance: FloatArray

    def scale(self) -> FloatArray:
        """Standard deviation of the ordinary samples, ``[...]``."""
        scale: FloatArray = np.sqrt(self.variance[..., 0])
        return scale


def climb(
    start: Spread,
    refit: Callable[[FloatArray], FloatArray],
    count: FloatArray | int,
    least_scale: float,
    steps: int,
    farthest: float | None = None,
) -> Spread:
    """Expectation-maximisation from one start, for ``steps`` steps.

    ``refit`` moves what is fitted to where it lies under these weights, and answers the squared
    deviations from there. ``count`` ``[..., 1]``: samples that the variance is a mean over.
    Beyond ``farthest``, in variances, a sample weighs less still.
    """
    squares, variance = start.squares, np.maximum(start.variance, least_scale**2)
    for _ in range(steps):
        in_variances = squares / variance
        share = _weight(in_variances)
        if farthest is not None:
            # Beyond ``farthest`` alone it is not 1, and there are few.
            far = in_variances > farthest
            share[far] *= farthest / in_variances[far]
        squares = refit(share)
        weighted = np.einsum("...j,...j->...", share, squares)[..., None] / count
        variance = np.maximum(weighted, least_scale**2)
    return Spread(squares, variance)


def log_density(in_variances: FloatArray) -> FloatArray:
    """But for a constant, and for the logarithm of the scale, which is to be taken off."""
    return np.log1p(_odds(in_variances)) - (1 - _NARROWING) / 2 * in_variances


def _weight(in_variances: FloatArray) -> FloatArray:
    """What each sample counts in the next location and variance: nearly 1, 0.01 for an accident."""
    share = _odds(in_variances)
    share += 1
    np.divide(_NARROWING, share, out=share)
    return np.subtract(1, share, out=share)


def _odds(in_variances: FloatArray) -> FloatArray:
    """Of an ordinary sample against an accident."""
    odds: FloatArray = -_NARROWING / 2 * in_variances
    np.exp(odds, out=odds)
    odds *= (1 - _SHARE) / _SHARE * _SPREAD
    return odds
