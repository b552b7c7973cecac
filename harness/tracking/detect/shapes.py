"""A level, a step or a line through noisy nights of which one in ten is an accident; many at once.

What is left over is noise as in `harness.statistics.mixture`. Shapes are compared by the
likelihood that each attains.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.statistics.mixture import FloatArray, Spread, climb, log_density

_EM_STEPS = 12
_AT_ONCE = 256
"""Rows: what they need stays in a core's cache."""
_FARTHEST = 15.0**2
"""In squared spreads: an accident beyond is no more unlikely, and weighs less."""


class Rows(NamedTuple):
    """Nights ``[rows, nights]``. ``weight``: 1, less where measured badly, 0 for no part of a row.

    ``is_level``: whether the night lies at the level to be fitted; the others are what was left
    over of earlier levels, and only say how large the noise is.
    """

    values: FloatArray
    weight: FloatArray
    is_level: FloatArray

    def pick(self, rows: NDArray[np.int64] | slice) -> "Rows":
        """These rows alone."""
        return Rows(*(each[rows] for each in self))


class Fit(NamedTuple):
    """Level where the regressor is 0, rise by 1 of it, scale, log-likelihood, ``[rows]`` each."""

    level: FloatArray
    rise: FloatArray
    scale: FloatArray
    log_likelihood: FloatArray


def fit_level(rows: Rows, least_scale: float) -> Fit:
    """One level for all nights of a row."""
    start = median_inside(rows.values, rows.is_level > 0)
    return _climb(rows, np.zeros_like(rows.values), start, np.zeros_like(start), least_scale)


def fit_step(rows: Rows, after: NDArray[np.bool_], least_scale: float) -> Fit:
    """A level, and another one ``after``, ``[rows, nights]``."""
    low = median_inside(rows.values, (rows.is_level > 0) & ~after)
    rise, step = median_inside(rows.values, after) - low, after.astype(np.float64)
    parts = [
        _climb(rows.pick(some), step[some], low[some], rise[some], least_scale)
        for some in (slice(begin, begin + _AT_ONCE) for begin in range(0, len(low), _AT_ONCE))
    ]
    return Fit(*map(np.concatenate, zip(*parts, strict=True)))


def fit_line(rows: Rows, least_scale: float) -> Fit:
    """A straight line, from the medians of a row's two halves."""
    inside = rows.is_level > 0
    order = (np.cumsum(inside, -1) * inside).astype(np.float64)
    late = inside & (order > order.max(-1, keepdims=True) / 2)
    low, high = (median_inside(rows.values, half) for half in (inside & ~late, late))
    apart = median_inside(order, late) - median_inside(order, inside & ~late)
    rise = (high - low) / np.maximum(apart, 1)
    return _climb(rows, order, low - rise * median_inside(order, inside & ~late), rise, least_scale)


def median_inside(values: FloatArray, inside: NDArray[np.bool_]) -> FloatArray:
    """Median over what is inside, ``[rows]``; each row has some."""
    ordered = np.sort(np.where(inside, values, np.inf), axis=-1)
    count, row = inside.sum(-1), np.arange(len(values))
    middle: FloatArray = (ordered[row, (count - 1) // 2] + ordered[row, count // 2]) / 2
    return middle


def _climb(
    rows: Rows, regressor: FloatArray, level: FloatArray, rise: FloatArray, least_scale: float
) -> Fit:
    """Expectation-maximisation from one start."""
    values, weight, is_level = rows
    inside, precision = weight > 0, weight**2
    count = inside.sum(-1)
    of_level, at = precision * is_level, is_level * regressor

    def squares() -> FloatArray:
        left = rise[:, None] * at
        left += level[:, None] * is_level
        np.subtract(values, left, out=left)
        left *= left
        left *= precision
        return left

    def refit(share: FloatArray) -> FloatArray:
        nonlocal level, rise
        weights = share * of_level
        total = weights.sum(-1)
        x_mean = np.einsum("ij,ij->i", weights, regressor) / total
        centred = regressor - x_mean[:, None]
        centred *= weights
        spread = np.einsum("ij,ij->i", centred, regressor)
        rise = np.divide(
            np.einsum("ij,ij->i", centred, values),
            spread,
            out=np.zeros_like(spread),
            where=spread > 1e-12,
        )
        level = np.einsum("ij,ij->i", weights, values) / total - rise * x_mean
        return squares()

    square = squares()
    start = Spread(square, 1.4826**2 * median_inside(square, inside)[:, None])
    fitted = climb(start, refit, count[:, None], least_scale, _EM_STEPS, _FARTHEST)
    likelihood = log_density(np.minimum(fitted.squares / fitted.variance, _FARTHEST))
    log_likelihood = np.where(inside, likelihood, 0.0).sum(-1)
    log_likelihood -= count * np.log(fitted.variance[:, 0]) / 2
    return Fit(level, rise, fitted.scale(), log_likelihood)
