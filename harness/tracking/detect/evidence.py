"""What speaks for a step at each place, as it stood on each night, in units of log-likelihood."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.statistics.mixture import FloatArray
from harness.tracking.detect.bounds import (
    LATEST_NIGHTS,
    LEAST_BEFORE,
    WINDOW,
    by_night,
    most_gained,
)
from harness.tracking.detect.shapes import Rows, fit_level, fit_line, fit_step

_BARTLETT = 4.0


class Steps(NamedTuple):
    """Possible steps: the night on which each is seen, and the first night after it.

    ``gain``: log-likelihood over one level, and ``excess`` by how much it was more before it was
    corrected, which is nothing to compare places by. ``level``: the one before, and ``before`` its
    nights. ``error``: of the rise.
    """

    night: NDArray[np.int64]
    first: NDArray[np.int64]
    gain: FloatArray
    excess: FloatArray
    level: FloatArray
    rise: FloatArray
    error: FloatArray
    before: NDArray[np.int64]


class Line(NamedTuple):
    """``gain``: log-likelihood over one level. ``rise``: from its first night to its last."""

    gain: float
    rise: float
    nights: int


class StepEvidence:
    """All possible steps of one row of nights, ``values`` and their ``weight`` ``[nights]``."""

    def __init__(self, values: FloatArray, weight: FloatArray, least_scale: float) -> None:
        self.values, self.weight, self.least_scale = values, weight, least_scale
        self._known: dict[tuple[int, ...], Steps] = {}
        self._certain: dict[tuple[tuple[int, ...], float, bool], set[int]] = {}
        self._most: dict[tuple[int, ...], FloatArray] = {}

    def steps(self, starts: tuple[int, ...], least_nights: int) -> Steps:
        """Steps in the level that began at the last of ``starts``, on each night it lasted.

        Earlier starts are those of earlier levels. Ordered by night, then by place.
        """
        if starts not in self._known:
            first = max(starts[-1] + LEAST_BEFORE, least_nights - 1)
            self._known[starts] = self._steps(starts, np.arange(first, len(self.values)))
        return self._known[starts]

    def steps_of(self, starts: tuple[int, ...], least_nights: int, night: int) -> Steps:
        """Those of one night; of the newest alone, where no other was asked for."""
        is_last = night == len(self.values) - 1
        if is_last and starts not in self._known and night + 1 >= least_nights:
            nights = np.array([night] if night >= starts[-1] + LEAST_BEFORE else [], np.int64)
            return self._steps(starts, nights)
        seen = self.steps(starts, least_nights)
        low, high = np.searchsorted(seen.night, [night, night + 1])
        return Steps._make(each[low:high] for each in seen)

    def certain_nights(
        self, starts: tuple[int, ...], least_nights: int, gain: float, by_own_past: bool
    ) -> set[int]:
        """Nights on which a step gains so much; ``by_own_past``: and its series' past allows it.

        These alone are fitted then.
        """
        asked = starts, gain, by_own_past
        if asked not in self._certain:
            seen = self._known.get(starts)
            if by_own_past and seen is None:
                able = np.flatnonzero(by_night(self._own_past(starts)[None])[0] >= gain)
                first = max(starts[-1] + LEAST_BEFORE, least_nights - 1)
                seen = self._steps(starts, able[able >= first])
            seen = seen or self.steps(starts, least_nights)
            self._certain[asked] = set(seen.night[seen.gain >= gain].tolist())
        return self._certain[asked]

    def own_past(self, starts: tuple[int, ...], seen: Steps) -> FloatArray:
        """The most that each step may gain by the series' own past."""
        most: FloatArray = self._own_past(starts)[seen.first, seen.night - seen.first]
        return most

    def _own_past(self, starts: tuple[int, ...]) -> FloatArray:
        if starts not in self._most:
            self._most[starts] = most_gained(
                self._levelled(starts)[None], self.least_scale, starts[-1]
            )[0]
        return self._most[starts]

    def _levelled(self, starts: tuple[int, ...]) -> FloatArray:
        """Earlier levels taken off."""
        values = self.values.copy()
        for one, other in pairwise(starts):
            values[one:other] -= np.median(values[one:other])
        return values

    def _steps(self, starts: tuple[int, ...], nights: NDArray[np.int64]) -> Steps:
        start = starts[-1]
        if not len(nights):
            nothing = np.empty(0)
            none = nothing.astype(np.int64)
            return Steps(none, none, nothing, nothing, nothing, nothing, nothing, none)
        rows = self.rows(starts, nights)
        flat = fit_level(rows, self.least_scale)
        back = np.arange(LATEST_NIGHTS)[::-1]
        first = nights[:, None] - back[None, :]
        of, place = np.nonzero(first >= start + LEAST_BEFORE)
        first = first[of, place]
        picked = rows.pick(of)
        after = np.arange(WINDOW)[None, :] >= (WINDOW - 1 - nights[of] + first)[:, None]
        step = fit_step(picked, after, self.least_scale)
        inverse = picked.weight**2 * picked.is_level
        excess = step.log_likelihood - flat.log_likelihood[of]
        gain = excess * _correction(picked)
        error = step.scale * np.sqrt(1 / (inverse * after).sum(-1) + 1 / (inverse * ~after).sum(-1))
        return Steps(
            nights[of],
            first,
            gain,
            excess - gain,
            step.level,
            step.rise,
            error,
            (picked.is_level * ~after).sum(-1).astype(np.int64),
        )

    def rows(self, starts: tuple[int, ...], nights: NDArray[np.int64]) -> Rows:
        """The window that ends at each of ``nights``; earlier levels are taken off."""
        index = nights[:, None] - np.arange(WINDOW)[::-1][None, :]
        values = self._levelled(starts)
        inside, index = index >= 0, np.maximum(index, 0)
        weight = np.where(inside, self.weight[index], 0.0)
        is_level = inside & (index >= starts[-1])
        return Rows(np.where(inside, values[index], 0.0), weight, is_level * 1.0)

    def line(self, starts: tuple[int, ...], night: int) -> Line:
        """A straight line through the level, as of a night."""
        rows = self.rows(starts, np.array([night]))
        line, level = fit_line(rows, self.least_scale), fit_level(rows, self.least_scale)
        gain = (line.log_likelihood - level.log_likelihood) * _correction(rows)
        nights = int(rows.is_level.sum())
        return Line(float(gain[0]), float(line.rise[0]) * (nights - 1), nights)


def _correction(rows: Rows) -> FloatArray:
    """Few nights know their own noise badly: the ratio grows by chance, as Bartlett saw.

    With this factor a false alert is as rare in the tenth night as in the sixtieth.
    """
    corrected: FloatArray = np.maximum(1 - _BARTLETT / (rows.weight > 0).sum(-1), 0.0)
    return corrected
