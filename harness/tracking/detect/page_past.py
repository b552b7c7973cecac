"""What a step of a page must gain: more than any seemed to on the nights before.

Nights of a page that has not changed can stand in any order. So one of N + 1 gains more than all
others in one case of N + 1, however many series there are and however they scatter.
"""

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.statistics.mixture import FloatArray
from harness.tracking.detect.bounds import WINDOW, most_by_night
from harness.tracking.detect.series import PointColumns, Series
from harness.tracking.detect.timing import evidence_of
from harness.tracking.detect.weigh import LEAST_NIGHTS

Of = TypeVar("Of", bound=Hashable)

FEW_NIGHTS = 16
"""Before so many a page has no past to speak of."""


def gains_of(all_series: Mapping[Of, Series]) -> dict[Of, FloatArray]:
    """The most that any step may gain in a series, by its points.

    Of timings with points enough and a value at each.
    """
    groups: dict[tuple[int, float], dict[Of, FloatArray]] = {}
    for key, series in all_series.items():
        points = PointColumns.of(series.points)
        is_long = series.kind == "timing" and len(points) >= LEAST_NIGHTS
        if is_long and np.isfinite(points.values).all():
            evidence, _ = evidence_of(series, points)
            alike = len(points), evidence.least_scale
            groups.setdefault(alike, {})[key] = evidence.values
    found: dict[Of, FloatArray] = {}
    for (_, least), group in groups.items():
        found |= zip(group, most_by_night(np.array(list(group.values())), least), strict=True)
    return found


def certain_by_past(
    gains: Mapping[Of, FloatArray],
    nights: Mapping[Of, NDArray[np.int64]],
    number: int,
    certain: float,
) -> FloatArray:
    """What a step must gain on each of ``number`` nights, ``certain`` at least, ``[nights]``.

    ``nights``: that of each point. A series in which a step was certain says nothing of the nights
    from then on.
    """
    most = np.zeros((len(gains), number))
    for row, (key, gain) in enumerate(gains.items()):
        np.maximum.at(most[row], nights[key], gain)
    needed, past = np.full(number, certain), np.zeros(number)
    changed = np.zeros(len(gains), bool)
    for night in range(number):
        needed[night] = max(certain, past[max(night - WINDOW, 0) : night].max(initial=0.0))
        if night >= FEW_NIGHTS:
            changed |= most[:, night] >= needed[night]
        past[night] = most[~changed, night].max(initial=0.0)
    return needed
