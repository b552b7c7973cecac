"""Whether what the watcher takes stays where it is, by a line through its samples."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

WARM_UP = 0.25
"""The first part of a run, in which it fills what has a bound."""
_LOOP_PASSES = 500_000
FEWEST = 60
"""Samples after it from which a line says anything."""
MOST = {"memory": 0.05, "descriptors": 0.25, "CPU": 0.3}
"""How far the line may rise from its beginning to its end, of the mean."""


class Sample(NamedTuple):
    """Of the watcher: a moment, its bytes, open files and what it has worked since the last sample
    per second, in fixed loops of CPU time."""

    moment: float
    memory: float
    descriptors: float
    cpu: float


class Line(NamedTuple):
    """``rise`` over all samples after the warm-up, of the ``mean``."""

    what: str
    mean: float
    rise: float

    @property
    def is_flat(self) -> bool:
        """Whether it rises no more than it may."""
        return self.rise <= MOST[self.what]


def loop_seconds() -> float:
    """CPU seconds of a fixed loop: how fast the machine is just now, which others decide too."""
    began = time.process_time()
    for _ in range(_LOOP_PASSES):
        pass
    return time.process_time() - began


def lines_of(samples: Sequence[Sample]) -> list[Line]:
    """A line for each resource; none where there are too few samples to say."""
    kept = np.array(samples[int(len(samples) * WARM_UP) :])
    if len(kept) < FEWEST:
        return []
    moments = kept[:, 0]
    found = []
    for what, values in zip(MOST, kept[:, 1:].T, strict=True):
        slope = np.polyfit(moments, values, 1)[0]
        mean = float(values.mean())
        found.append(Line(what, mean, float(slope * (moments[-1] - moments[0])) / mean))
    return found
