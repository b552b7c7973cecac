"""Where a handful of noisy numbers lies, and how surely, when one in ten of them is an accident.

Location and scale of the model in `mixture` are fitted by maximum likelihood (EM), and a
supposed location is judged by its likelihood ratio. Shifting or stretching the data leaves that
ratio as it is, so its distribution depends on the sample size alone, and one parametric bootstrap
serves all data of that size.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from harness.statistics.mixture import FloatArray, Spread, climb, log_density

_EM_STEPS = 25
_DRAWS = 20_000
_LARGEST_SIZE = 64  # from here on the distribution hardly moves, and drawing takes seconds
_TAIL = 100
LEAST_P = 1e-9
"""Of p-values: a smaller one would be the model's word alone."""
_SCALE_FLOOR = 1e-9  # exact metrics repeat to the digit and have no scale


class LocationFit(NamedTuple):
    """Maximum-likelihood location, scale of the ordinary samples, and log-likelihood, ``[...]``."""

    location: FloatArray
    scale: FloatArray
    log_likelihood: FloatArray


class Reference(NamedTuple):
    """What standard normal samples of ``size`` give: likelihood ratios ``[draws]``, ascending;
    mean scale.
    """

    likelihood_ratios: FloatArray
    scale: float
    size: int

    def p_value(self, likelihood_ratio: float) -> float:
        """Two-sided share of samples at least as far out; never below 1e-9.

        Counted among the draws. Beyond them the tail is followed from the last hundred: samples
        so far from 0 for their spread that the ratio is x have a spread of exp(-x / (2 size)) of
        that distance, and of ``size`` samples that is as likely as its power ``size`` - 1. Twice
        as much is said, for what a hundred draws leave open.
        """
        draws = len(self.likelihood_ratios)
        beyond = draws - int(np.searchsorted(self.likelihood_ratios, likelihood_ratio))
        counted = (1 + beyond) / (1 + draws)
        if beyond >= _TAIL:
            return counted
        further = likelihood_ratio - float(self.likelihood_ratios[-_TAIL])
        fall = math.exp(-further * (self.size - 1) / (2 * self.size))
        return max(min(counted, 2 * (1 + _TAIL) / (1 + draws) * fall), LEAST_P)


def fit(x: FloatArray, location: FloatArray | float | None = None) -> LocationFit:
    """Fit the model to ``[..., n]`` along the last axis; ``location`` ``[...]`` holds it there.

    The likelihood can have several peaks: EM starts from the median and from the mean, and the
    higher peak counts.
    """
    starts = (np.median(x, -1), x.mean(-1)) if location is None else (np.asarray(location),) * 2
    deviations = [np.abs(x - start[..., None]) for start in starts]
    scales = (1.4826 * np.median(deviations[0], -1), np.sqrt(np.square(deviations[1]).mean(-1)))
    held = location is not None
    one, other = (_climb(x, *start, held) for start in zip(starts, scales, strict=True))
    higher = other.log_likelihood > one.log_likelihood
    return LocationFit(*(np.where(higher, b, a) for a, b in zip(one, other, strict=True)))


def likelihood_ratio(x: FloatArray, location: FloatArray | float = 0.0) -> FloatArray:
    """Twice the log-likelihood that ``[..., n]`` loses when its location is held; at least 0."""
    return _ratio(fit(x), fit(x, location))


def _ratio(free: LocationFit, held: LocationFit) -> FloatArray:
    return np.maximum(2 * (free.log_likelihood - held.log_likelihood), 0.0)


def reference(size: int) -> Reference:
    """Parametric bootstrap for samples of ``size``: seeded, and drawn without outliers.

    That is the unfavourable case: with outliers, wrong findings become rarer.
    """
    return _draw(min(size, _LARGEST_SIZE))


@lru_cache
def _draw(size: int) -> Reference:
    draws = np.random.default_rng(size).standard_normal((_DRAWS, size))
    free = fit(draws)
    return Reference(np.sort(_ratio(free, fit(draws, 0.0))), float(free.scale.mean()), size)


def location_interval(x: FloatArray, confidence: float = 0.95) -> tuple[float, float]:
    """All locations of ``[n]`` that the likelihood ratio does not reject, from first to last."""
    best = fit(x)
    centre = float(best.location)
    critical = float(np.quantile(reference(len(x)).likelihood_ratios, confidence))
    least = float(best.log_likelihood) - critical / 2
    return centre - _reach(centre - x, least), centre + _reach(x - centre, least)


def _climb(x: FloatArray, location: FloatArray, scale: FloatArray, held: bool) -> LocationFit:
    """Expectation-maximisation from one start."""
    centre = location[..., None]
    squares = np.square(x - centre)

    def refit(weight: FloatArray) -> FloatArray:
        nonlocal centre
        if held:
            return squares
        centre = (weight * x).sum(-1, keepdims=True) / weight.sum(-1, keepdims=True)
        moved: FloatArray = np.square(x - centre)
        return moved

    count = x.shape[-1]
    start = Spread(squares, np.square(scale[..., None]))
    spread = climb(start, refit, count, _SCALE_FLOOR, _EM_STEPS)
    likelihood = log_density(spread.squares / spread.variance).sum(-1)
    scale = spread.scale()
    return LocationFit(centre[..., 0], scale, likelihood - count * np.log(scale))


def _reach(x: FloatArray, least: float) -> float:
    """The furthest location above 0 whose log-likelihood for ``[n]`` is at ``least`` or above.

    By a grid, refined where it is left for good: the profile may rise again after a crossing.
    """
    near, far = 0.0, float(np.abs(x).max()) + _SCALE_FLOOR
    while fit(x, far).log_likelihood >= least:
        far *= 2
    for _ in range(3):
        grid = np.linspace(near, far, 65)
        last = int(np.flatnonzero(fit(x[None], grid).log_likelihood >= least).max(initial=0))
        near, far = float(grid[last]), float(grid[last + 1])
    return (near + far) / 2
