"""A roofline's rates that fit measured step times best, some of them held."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibrate.known import ATTENTION_RATES, LAUNCH, RATES, base
from benchmarks.calibrate.point import Load
from engines.builtin.device.profile import DeviceProfile

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_PARTS = (*RATES[:2], *ATTENTION_RATES)
"""Whose rate each of `DeviceProfile.parts` is."""
_LEAST_LAUNCH = 1e-3
"""Share of the shortest step: one that begins at zero has no logarithm to leave it by."""
_MOST_PARTINGS = 8
_BEYOND = 300.0
"""No logarithm of a rate is anywhere near, and its exponential still fits a float."""


class Solution(NamedTuple):
    """``rates`` by name, held ones included; ``cost``: the sum over the points of
    log(modelled / measured)², and of what being off the accelerator's best costs.
    """

    rates: dict[str, float]
    cost: float


class Roofline:
    """`DeviceProfile.seconds` for all points at once, against what was measured.

    ``ceilings``: the accelerator's best by field, as far as it is known. ``lean``: what a rate that
    is off its best by a factor of e costs, as much as such an error at one point.
    """

    def __init__(
        self,
        sizes: DeviceProfile,
        loads: Sequence[Load],
        seconds: Sequence[float],
        ceilings: Mapping[str, float],
        lean: float,
    ) -> None:
        self._parts = np.array([sizes.parts(*load) for load in loads])
        self.seconds = np.asarray(seconds, np.float64)
        self._ceilings = ceilings
        self._bests = [(name, best) for name in _PARTS if (best := ceilings.get(base(name)))]
        self._lean = lean

    def modelled(self, rates: Mapping[str, float]) -> FloatArray:
        """Seconds ``[points]``; attention's rates are the linear layers' where they are missing."""
        weights, linear, kv, attention = (
            part / _rate(rates, name) for part, name in zip(self._parts.T, _PARTS, strict=True)
        )
        seconds: FloatArray = np.maximum(weights, linear) + np.maximum(kv, attention)
        return seconds + rates[LAUNCH]

    def solve(
        self,
        free: Sequence[str],
        held: Mapping[str, float],
        num_descents: int = 6,
        enough: float = 0.0,
    ) -> Solution:
        """The best of several descents: where a maximum goes over from one side to the other, a
        descent gets no further. Done as soon as the cost comes to ``enough`` or less.
        """
        from scipy.optimize import least_squares

        measured = np.log(self.seconds)

        def rates(logarithms: FloatArray) -> dict[str, float]:
            values = np.exp(np.clip(logarithms, -_BEYOND, _BEYOND)).tolist()
            return dict(zip(free, values, strict=True)) | dict(held)

        def residuals(logarithms: FloatArray) -> FloatArray:
            found = rates(logarithms)
            errors = np.log(self.modelled(found)) - measured
            off = [math.log(_rate(found, name) / best) for name, best in self._bests]
            return np.append(errors, np.multiply(self._lean, off))

        def cost(logarithms: FloatArray) -> float:
            return float(np.sum(residuals(logarithms) ** 2))

        begins = sorted(self._starts(free, held), key=cost)
        if cost(begins[0]) <= enough:
            return Solution(rates(begins[0]), cost(begins[0]))
        found = [least_squares(residuals, begin).x for begin in begins[:num_descents]]
        lowest = min(found, key=cost)
        return Solution(rates(lowest), cost(lowest))

    def _starts(self, free: Sequence[str], held: Mapping[str, float]) -> Iterator[FloatArray]:
        """Logarithms of the ``free`` rates, for ways to part the points.

        Were it known which steps are bound by bytes and which by arithmetic, the roofline would be
        linear in the inverse rates. Linear layers go over from one to the other at some number of
        tokens, attention at some ratio of context to pairs.
        """
        from scipy.optimize import nnls

        # For each unit of 1 / rate, as shares of what was measured: relative errors count.
        parts = self._parts / self.seconds[:, None]
        for linear_bytes in _partings(parts[:, 0], parts[:, 1]):
            for attention_bytes in _partings(parts[:, 2], parts[:, 3]):
                columns = {
                    RATES[0]: parts[:, 0] * linear_bytes,
                    RATES[1]: parts[:, 1] * ~linear_bytes,
                    LAUNCH: 1 / self.seconds,
                    ATTENTION_RATES[0]: parts[:, 2] * attention_bytes,
                    ATTENTION_RATES[1]: parts[:, 3] * ~attention_bytes,
                }
                for name in ATTENTION_RATES:
                    if name not in free and name not in held:
                        columns[base(name)] = columns[base(name)] + columns[name]
                left = np.ones(len(parts))
                for name, value in held.items():
                    left -= columns[name] * (value if name == LAUNCH else 1 / value)
                matrix = np.column_stack([columns[name] for name in free])
                scale = np.linalg.norm(matrix, axis=0)
                scale[scale == 0] = 1.0
                try:
                    inverse = nnls(matrix / scale, left)[0] / scale
                except RuntimeError:  # no convergence: some of these systems are singular
                    continue
                yield np.array(list(map(self._logarithm, free, inverse.tolist())))

    def _logarithm(self, name: str, inverse: float) -> float:
        """Of a rate, or of the launch: one that nothing asked for is the accelerator's best, or so
        high that no step is bound by it.
        """
        if name == LAUNCH:
            return math.log(max(inverse, _LEAST_LAUNCH * float(self.seconds.min())))
        if inverse > 0:
            return -math.log(inverse)
        most = float((self._parts / self.seconds[:, None]).max()) or 1.0
        return math.log(self._ceilings.get(base(name)) or most / _LEAST_LAUNCH)


def _rate(rates: Mapping[str, float], name: str) -> float:
    return rates.get(name) or rates[base(name)]


def _partings(read: FloatArray, arithmetic: FloatArray) -> Iterator[BoolArray]:
    """Which points are bound by bytes: those with the most to an operation, from none to all."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(read / arithmetic, nan=0.0, posinf=np.inf)
    yield np.zeros(len(ratio), np.bool_)
    distinct = np.unique(ratio)
    few = np.linspace(0, len(distinct) - 1, min(_MOST_PARTINGS, len(distinct))).round()
    for least in distinct[few.astype(np.int64)]:
        yield ratio >= least
