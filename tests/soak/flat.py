"""Whether what a process takes stays where it is, by a line through its samples."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

WARM_UP = 0.25
"""The first part of a run, in which it fills what has a bound."""
_LOOP_PASSES = 500_000
FEWEST = 60
"""Samples after it from which a line says anything."""
_MOST_SAMPLES, _SECONDS_PER_SAMPLE = 240, 1.0
MOST = {"memory": 0.05, "descriptors": 0.25, "CPU": 0.3}
"""How far the line may rise from its beginning to its end, of the mean."""


class Sample(NamedTuple):
    """Of a process: a moment, its bytes, open files and what it has worked since the last sample
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


class Sampler:
    """Takes ``samples``, from the second look on."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._before: tuple[float, float] | None = None

    def take(self, memory: float, descriptors: float, cpu_seconds: float) -> None:
        """As it is now."""
        now, before = time.monotonic(), self._before
        self._before = now, cpu_seconds
        if before:
            rate = (cpu_seconds - before[1]) / (now - before[0]) / _loop_seconds()
            self.samples.append(Sample(now, memory, descriptors, rate))


def seconds_between_samples(seconds: float) -> float:
    """Of a soak that takes so long."""
    return max(_SECONDS_PER_SAMPLE, seconds / _MOST_SAMPLES)


def _loop_seconds() -> float:
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


def grown(samples: Sequence[Sample]) -> str:
    """What rises by more than it may; prints how each does."""
    lines = lines_of(samples)
    for line in lines:
        limit = f"limit {MOST[line.what]:+.0%}"
        print(f"{line.what}: mean {line.mean:,.3f}, rises by {line.rise:+.1%} of it ({limit})")
    if not lines:
        print(f"fewer than {FEWEST} samples: whether it grows is not known")
    return ", ".join(line.what for line in lines if not line.is_flat)
