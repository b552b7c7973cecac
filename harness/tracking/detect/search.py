"""Walks through the nights of a timing and says on each what is certain by then.

A step is certain when the log-likelihood that it gains over a level, the re-runs' part included,
reaches `CERTAIN`, and it has lasted `LASTING` nights or a re-run speaks for it. What a night has
made certain, later nights do not change.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.tracking.detect.change import Certainty
from harness.tracking.detect.evidence import Evidence, Steps
from harness.tracking.detect.shapes import Array

CERTAIN = 7.8
"""Fewer than 2 % of 60-night histories without a change reach it: `benchmarks/detectors.py`."""
SUSPECT = 2.5
"""Worth a re-run: five to seven times in 60 nights without a change (the same)."""
LASTING = 3
"""Two accidents in a row are common in 60 nights (one night in twenty is one), three are not."""
LEAST_NIGHTS = 8
DRIFT_MARGIN = 3.0
"""By how much a step must be likelier than a straight line."""
_AS_WELL = 2.0


class PairRerun(NamedTuple):
    """A re-run of points: log ratio of ``after`` to ``before`` (indices), its standard error."""

    before: int
    after: int
    rise: float
    error: float


class Step(NamedTuple):
    """A step, seen on ``night``; ``low`` to ``high`` are the places that are about as likely."""

    night: int
    place: int
    low: int
    high: int
    rise: float
    error: float
    freedom: int
    level: float
    certainty: Certainty


class Walk(NamedTuple):
    """Steps in order, the last maybe a suspicion; where levels began; nights seen as a drift."""

    steps: list[Step]
    starts: tuple[int, ...]
    drifts: list[int]


Large = Callable[[float, float], bool]
"""Whether a rise from a level is one to speak of."""
Ask = Callable[[int, int], PairRerun | None]
"""A re-run of the night's point against the one before the place."""


def search(
    evidence: Evidence, is_large: Large, reruns: Sequence[PairRerun] = (),
    resets: Sequence[int] = (), ask: Ask | None = None,
) -> Walk:  # fmt: skip
    """All steps. ``ask`` is asked for a re-run wherever there is a suspicion, as it would be."""
    starts: tuple[int, ...] = (0,)
    steps, drifts, known = list[Step](), list[int](), list(reruns)
    last = len(evidence.values) - 1
    for night in range(last + 1):
        if night in resets and night > starts[-1]:
            starts = (*starts, night)
        seen = _of_night(evidence.steps(starts, LEAST_NIGHTS), night)
        found = _weigh(seen, known, is_large)
        if ask and found and found.certainty == "suspected" and (answer := ask(night, found.place)):
            known.append(answer)
            found = _weigh(seen, known, is_large)
        if found and found.certainty == "found":
            gain = float(seen.gain[seen.first == found.place][0])
            if gain < evidence.line_gain(starts, night) + DRIFT_MARGIN:
                drifts.append(night)
                found = None
        if found and found.certainty != "suspected":
            starts = (*starts, found.place)
            steps.append(found)
        elif found and night == last:
            steps.append(found)
    return Walk(steps, starts, drifts)


def _of_night(seen: Steps, night: int) -> Steps:
    low, high = np.searchsorted(seen.night, [night, night + 1])
    return Steps._make(each[low:high] for each in seen)


def _weigh(seen: Steps, reruns: Sequence[PairRerun], is_large: Large) -> Step | None:
    """The likeliest step that is certain, else one that the machine made, else a suspicion."""
    if not len(seen.night):
        return None
    night, first, gain = int(seen.night[0]), seen.first, seen.gain
    total, rise, error = _with_reruns(seen, [run for run in reruns if run.after <= night])
    pairs = zip(seen.level, rise, strict=True)
    large = np.array([is_large(float(low), float(by)) for low, by in pairs])
    certain = large & (total >= CERTAIN)
    lasted = night - first + 1 >= LASTING
    refuted = lasted & (gain >= CERTAIN) & (total < SUSPECT)
    kinds: list[tuple[Certainty, NDArray[np.bool_], Array]] = [
        ("confirmed", certain & (total > gain), total),
        ("found", certain & lasted, total),
        ("machine", refuted, gain),
        ("suspected", large & (total >= SUSPECT), total),
    ]
    for certainty, mask, score in kinds:
        if not mask.any():
            continue
        if certainty == "machine":
            rise, error = seen.rise, seen.error
        best = int(np.argmax(np.where(mask, score, -np.inf)))
        near = first[score >= score[best] - _AS_WELL]
        place = int(first[best])
        return Step(
            night, place, int(near.min()), int(near.max()), float(rise[best]), float(error[best]),
            int(seen.before[best]) + night - place - 1, float(seen.level[best]), certainty,
        )  # fmt: skip
    return None


def _with_reruns(seen: Steps, reruns: Sequence[PairRerun]) -> tuple[Array, Array, Array]:
    """Gain, rise and its error when the re-runs across a place are taken in.

    Near its best rise the likelihood of the nights falls as a parabola; a re-run's is one too, so
    the best rise of both is the mean weighted by precision.
    """
    precision, weighted = np.zeros_like(seen.gain), np.zeros_like(seen.gain)
    for run in reruns:
        across = (run.before < seen.first) & (seen.first <= run.after)
        precision += across / run.error**2
        weighted += across * run.rise / run.error**2
    own = 1 / seen.error**2
    rise = (own * seen.rise + weighted) / (own + precision)
    fallen = own * (rise - seen.rise) ** 2 / 2
    total = seen.gain + weighted * rise - precision * rise**2 / 2 - fallen
    none = precision == 0
    return (
        np.where(none, seen.gain, total), np.where(none, seen.rise, rise),
        1 / np.sqrt(own + precision),
    )  # fmt: skip
