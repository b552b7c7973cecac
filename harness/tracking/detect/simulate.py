"""Made-up histories: noise, accidents, a step, and the re-run that somebody would have made."""

from typing import NamedTuple

import numpy as np

from harness.statistics.mixture import FloatArray
from harness.tracking.detect.change import Rerun
from harness.tracking.detect.timing import AskRerun


class Noise(NamedTuple):
    """Relative spread of a night; share of nights that are slow by 5 to 30 %."""

    sd: float
    slow_share: float = 0.0


class SimulatedHistory(NamedTuple):
    """Seconds ``[nights]``, larger by ``step`` (0.08 is 8 %) from ``place`` on."""

    values: FloatArray
    place: int
    step: float


def simulated_history(
    rng: np.random.Generator, noise: Noise, nights: int, place: int, step: float
) -> SimulatedHistory:
    """One history with the noise of `Noise`."""
    logs = noise.sd * rng.standard_normal(nights)
    slow = rng.random(nights) < noise.slow_share
    logs += np.where(slow, np.log(rng.uniform(1.05, 1.30, nights)), 0.0)
    return planted(logs, place, step)


def planted(logs: FloatArray, place: int, step: float) -> SimulatedHistory:
    """A step in what is otherwise noise, given as logarithms."""
    later = np.arange(len(logs)) >= place
    return SimulatedHistory(np.exp(logs + later * np.log1p(step)), place, step)


def rerun_of(made: SimulatedHistory, rng: np.random.Generator, sd: float) -> AskRerun:
    """Answers with the truth and a normal error of ``sd``; commits are numbers, as `Series.of`."""

    def ask(before: str, after: str) -> Rerun:
        crossed = int(before) < made.place <= int(after)
        log = crossed * np.log1p(made.step) + sd * rng.standard_normal()
        low, ratio, high = np.exp(log + np.array([-1.96, 0, 1.96]) * sd)
        return Rerun(before, after, float(ratio), (float(low), float(high)))

    return ask
