"""What is certain of a step on one night, and where it lies as later nights have it.

A step is certain when the log-likelihood that it gains over a level, the re-runs' part included,
reaches `CERTAIN`, and it has lasted `LASTING` nights or a re-run speaks for it. Among many series
it must gain more: `StepLimits.of_page`.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.statistics.mixture import FloatArray
from harness.tracking.detect.bounds import LATEST_NIGHTS
from harness.tracking.detect.change import Certainty
from harness.tracking.detect.evidence import StepEvidence, Steps
from harness.tracking.detect.locate import PairRerun, Range, locate, with_reruns

CERTAIN = 7.8
"""Fewer than 2 % of 60-night histories without a change reach it: `benchmarks/detectors.py`."""
SUSPECT = 2.5
"""Worth a re-run: five to seven times in 60 nights without a change (the same)."""
FEW_SERIES = 40
"""So many have four suspicions a night, which is what a night measures again."""
_ALONE = 3.0
_CONFIRMED = 2.0
"""By how much more a step must gain among e times as many series, alone and with a re-run: what
leaves 2 of 50 shuffled histories a false regression, `benchmarks/shuffled_histories.py`."""
LASTING = 3
"""Two accidents in a row are common in 60 nights (one night in twenty is one), three are not."""
LEAST_NIGHTS = 8
_IN_VIEW = LATEST_NIGHTS - 4
"""Nights after the first place of a range that still say where the step lies."""


class StepLimits(NamedTuple):
    """Log-likelihoods that a step must gain to be certain, or to be suspected.

    ``confirmed``: with the help of a re-run. ``by_own_past``: it gains no more than the series' own
    earlier nights allow.
    """

    certain: float = CERTAIN
    confirmed: float = CERTAIN
    suspect: float = SUSPECT
    by_own_past: bool = False

    @classmethod
    def of_page(cls, series: int) -> "StepLimits":
        """Where so many series are looked at: as often wrong for all of them as with few."""
        more = math.log(max(1.0, series / FEW_SERIES))
        return cls(
            CERTAIN + _ALONE * more,
            CERTAIN + _CONFIRMED * more,
            SUSPECT + _CONFIRMED * more,
            more > 0,
        )

    @property
    def eased(self) -> "StepLimits":
        """Where many that run beside a series have been seen to change."""
        return self._replace(certain=CERTAIN, confirmed=CERTAIN)

    @property
    def held(self) -> "StepLimits":
        """Where that is only suspected: nothing is certain without a re-run."""
        return self._replace(certain=math.inf)


OF_ONE = StepLimits()
"""Where a series is looked at alone."""


class WeighedStep(NamedTuple):
    """A step, seen on ``night``; ``named`` is where it was said to lie then, ``where`` now.

    ``starts``: where the level before it and earlier ones began.
    """

    night: int
    named: Range
    where: Range
    rise: float
    error: float
    freedom: int
    level: float
    certainty: Certainty
    starts: tuple[int, ...]

    @property
    def next_pair(self) -> tuple[int, int] | None:
        """What a re-run should compare: is there a step at all, and then, where does it lie."""
        if self.certainty == "machine":
            return None
        suspected = self.where.place - 1, self.night
        return suspected if self.certainty == "suspected" else self.where.split


Large = Callable[[float, float], bool]
"""Whether a rise from a level is one to speak of."""


def of_night(evidence: StepEvidence, starts: tuple[int, ...], night: int) -> Steps:
    """The possible steps in the level that began at the last of ``starts``, as seen on a night."""
    return evidence.steps_of(starts, LEAST_NIGHTS, night)


def weigh(
    evidence: StepEvidence,
    starts: tuple[int, ...],
    night: int,
    reruns: Sequence[PairRerun],
    is_large: Large,
    limits: StepLimits,
) -> WeighedStep | None:
    """The likeliest step that is certain, else one that the machine made, else a suspicion."""
    seen = of_night(evidence, starts, night)
    if not len(seen.night):
        return None
    if limits.by_own_past:
        seen = seen._replace(gain=np.minimum(seen.gain, evidence.own_past(starts, seen)))
    first, gain = seen.first, seen.gain
    known = _inside(reruns, starts[-1], night, night)
    total, rise, error = with_reruns(seen, known)
    pairs = zip(seen.level, rise, strict=True)
    large = np.array([is_large(float(low), float(by)) for low, by in pairs])
    lasted = night - first + 1 >= LASTING
    refuted = lasted & (gain >= limits.certain) & (total < limits.suspect)
    kinds: list[tuple[Certainty, NDArray[np.bool_], FloatArray]] = [
        ("confirmed", large & (total >= limits.confirmed) & (total > gain), total),
        ("found", large & lasted & (total >= limits.certain), total),
        ("machine", refuted, gain),
        ("suspected", large & (total >= limits.suspect), total),
    ]
    for certainty, mask, score in kinds:
        if not mask.any():
            continue
        if certainty == "machine":
            rise, error = seen.rise, seen.error
        best = int(np.argmax(np.where(mask, score, -np.inf)))
        raw = score + seen.excess
        where = locate(first, np.where(rise * rise[best] > 0, raw, -np.inf), best, known)
        return WeighedStep(
            night,
            where,
            where,
            float(rise[best]),
            float(error[best]),
            int(seen.before[best]) + night - where.place - 1,
            float(seen.level[best]),
            certainty,
            starts,
        )
    return None


def settled(
    evidence: StepEvidence,
    step: WeighedStep,
    starts: tuple[int, ...],
    night: int,
    reruns: Sequence[PairRerun],
) -> WeighedStep:
    """A step where it lies by the nights and re-runs up to ``night``.

    ``starts``: of the levels known by then. The next one ends what speaks of this step.
    """
    if step.certainty == "machine":
        return step
    end = min([night, *(start - 1 for start in starts if start > step.named.place)])
    until = max(step.night, min(end, step.named.low + _IN_VIEW))
    seen = of_night(evidence, step.starts, until)
    known = _inside(reruns, step.starts[-1], max(end, step.night), night)
    score, rise, _ = with_reruns(seen, known)
    # What begins after the night on which this step was seen is another one.
    same = (rise * step.rise > 0) & (seen.first <= min(end, step.night))
    score = np.where(same, score + seen.excess, -np.inf)
    if score.max() == -np.inf:
        return step
    return step._replace(where=locate(seen.first, score, int(np.argmax(score)), known))


def _inside(reruns: Sequence[PairRerun], start: int, end: int, night: int) -> list[PairRerun]:
    """Those known on a night between two points; one across another step says as much of that."""
    known = (run for run in reruns if run.night <= night)
    return [run for run in known if start <= run.before and run.after <= end]
