"""The most that a step may gain where many series are looked at: known of all of them, unfitted.

A fit finds in the noise of one series in a thousand what looks like two levels. Medians know
better, and what they make impossible need not be fitted.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from harness.statistics.mixture import FloatArray
from harness.tracking.detect.shapes import median_inside

WINDOW = 44
"""Nights that are looked at: older ones say little of today's level and noise."""
LATEST_NIGHTS = 14
"""A step is looked for in so many nights; later it belongs to the level."""
LEAST_BEFORE = 3
"""Nights at the level before, so that one accident is no level."""
_TO_SD = 1.4826
_AT_ONCE = 256
_LITTLE = 2.0
"""What gains less is not looked at more closely."""


def most_by_night(values: FloatArray, least_scale: float) -> FloatArray:
    """The most that any step may gain that is seen on a night, ``[series, nights]``.

    Of ``values`` ``[series, nights]`` that have all one level.
    """
    parts = [
        by_night(most_gained(values[begin : begin + _AT_ONCE], least_scale))
        for begin in range(0, len(values), _AT_ONCE)
    ]
    return np.concatenate(parts)


def by_night(gains: FloatArray) -> FloatArray:
    """The most of what `most_gained` says, by the night on which it is seen."""
    most = np.zeros(gains.shape[:2])
    nights = gains.shape[1]
    for after in range(min(LATEST_NIGHTS, nights)):
        np.maximum(most[:, after:], gains[:, : nights - after, after], out=most[:, after:])
    return most


def most_gained(values: FloatArray, least_scale: float, start: int = 0) -> FloatArray:
    """The most that a step may gain, ``[series, first night after, nights after - 1]``.

    Of ``values`` ``[series, nights]`` that have all one level from ``start`` on and lie around 0
    before. By the medians' rise in median absolute deviations; and a night more than half of the
    rise away from its level, on that side, is as likely as there were such nights before.
    0 where no step is looked for.
    """
    series, nights = values.shape
    gains = np.zeros((series, nights, LATEST_NIGHTS))
    begin = start + LEAST_BEFORE
    if nights <= begin:
        return gains
    padded = np.concatenate([np.zeros((series, WINDOW)), values], 1)
    before = sliding_window_view(padded, WINDOW, 1)[:, begin:nights]
    number = np.arange(begin, nights)[:, None] + np.arange(-WINDOW, 0)[None, :]
    inside, is_level = number >= 0, number >= start

    def median(of: FloatArray, where: NDArray[np.bool_]) -> FloatArray:
        found = median_inside(of.reshape(-1, WINDOW), np.tile(where, (series, 1)))
        return found.reshape(series, -1)

    level = median(before, is_level)
    left = before - level[:, :, None] * is_level
    scale = np.maximum(_TO_SD * median(np.abs(left), inside), least_scale)
    count = inside.sum(-1)
    for after in range(min(LATEST_NIGHTS, nights - begin)):
        last = nights - begin - after
        later = np.median(sliding_window_view(values[:, begin:], after + 1, 1), axis=2)
        rise = later - level[:, :last]
        share = 2 * (1 / is_level.sum(-1)[:last] + 1 / (after + 1))
        gain = (rise / scale[:, :last]) ** 2 / share
        of, place = np.nonzero(gain >= _LITTLE)
        apart = left[of, place] * np.sign(rise[of, place])[:, None]
        far = ((apart > np.abs(rise[of, place])[:, None] / 2) & inside[place]).sum(-1)
        own = (after + 1) * np.log((count[place] + 1) / (far + 1))
        gain[of, place] = np.minimum(gain[of, place], own)
        gains[:, begin : begin + last, after] = gain
    return gains
