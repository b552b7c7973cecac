"""Logarithms where all values are above 0, so that changes are ratios; else plain multiples."""

import math
from typing import NamedTuple

import numpy as np

from harness.statistics.mixture import FloatArray

_FARTHEST = 1e60  # its square is a number still
_LARGEST_EXPONENT = 709.0


class Scale(NamedTuple):
    """``unit``: the size of a typical value where there is no logarithm, else 1."""

    is_log: bool
    unit: float

    @classmethod
    def of(cls, values: FloatArray) -> "Scale":
        """For finite values, at least one."""
        if (values > 0).all():
            return cls(True, 1.0)
        unit = float(np.median(np.abs(values))) or float(np.abs(values).max()) or 1.0
        return cls(False, unit)

    def to(self, values: FloatArray) -> FloatArray:
        """From values onto the scale."""
        if self.is_log:
            return np.log(values)
        with np.errstate(over="ignore", under="ignore"):
            return np.clip(values / self.unit, -_FARTHEST, _FARTHEST)

    def back(self, value: float) -> float:
        """From the scale to a value."""
        if not self.is_log:
            return value * self.unit
        return math.exp(min(value, _LARGEST_EXPONENT))
