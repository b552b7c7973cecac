"""Noise of which one sample in ten is an accident: EM's weights, and the density.

A sample is normal or, with probability 0.1, normal with ten times the spread. Both functions take
squared deviations in variances of the ordinary samples, ``[...]``.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_SHARE = 0.1
_SPREAD = 10.0
_NARROWING = 1 - _SPREAD**-2


def weight(squares: FloatArray) -> FloatArray:
    """What each sample counts in the next location and variance: nearly 1, 0.01 for an accident."""
    return 1 - _NARROWING / (1 + _odds(squares))


def log_density(squares: FloatArray) -> FloatArray:
    """But for a constant, and for the logarithm of the scale, which is to be taken off."""
    return np.log1p(_odds(squares)) - (1 - _NARROWING) / 2 * squares


def _odds(squares: FloatArray) -> FloatArray:
    """Of an ordinary sample against an accident."""
    return (1 - _SHARE) / _SHARE * _SPREAD * np.exp(-_NARROWING / 2 * squares)
