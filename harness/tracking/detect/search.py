"""Walks through the nights of a timing and says on each what is certain by then.

That there is a step, later nights do not take back; where it lies, they may know better.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from harness.tracking.detect.evidence import StepEvidence
from harness.tracking.detect.locate import PairRerun
from harness.tracking.detect.weigh import (
    LEAST_NIGHTS,
    OF_ONE,
    Large,
    StepLimits,
    WeighedStep,
    of_night,
    settled,
    weigh,
)

DRIFT_MARGIN = 3.0
"""By how much a step must be likelier than a straight line."""
_ALIKE = 0.25
"""Levels are one when they lie nearer than that share of the step between two."""
PER_NIGHT = 4
"""Re-runs of one night at most, where somebody can be asked for them."""
RECENT_NIGHTS = 7
"""For so many nights re-runs narrow where a step lies."""


class Walk(NamedTuple):
    """Steps in order, the last maybe a suspicion; where levels began; nights seen as a drift."""

    steps: list[WeighedStep]
    starts: tuple[int, ...]
    drifts: list[int]


Ask = Callable[[int, int, int], PairRerun | None]
"""A re-run of two points, asked for on a night."""


def search(
    evidence: StepEvidence,
    is_large: Large,
    reruns: Sequence[PairRerun] = (),
    resets: Sequence[int] = (),
    ask: Ask | None = None,
    limits: StepLimits = OF_ONE,
    limits_on: Mapping[int, StepLimits] = MappingProxyType({}),
) -> Walk:
    """All steps. ``ask`` is asked for the re-runs that `gcbench nightly` would make.

    ``limits_on`` some nights stand for ``limits``.
    """
    starts: tuple[int, ...] = (0,)
    steps, drifts, known = list[WeighedStep](), list[int](), list(reruns)
    last = len(evidence.values) - 1
    for night in range(last + 1):
        limit = limits_on.get(night, limits)
        if night in resets and night > starts[-1]:
            starts = (*starts, night)
        # Before the last night a suspicion is of use to whoever can be asked for a re-run.
        is_idle = not (known or ask) and night < last
        # Nights that ask for more are fitted with the others: each gain is a fit of its own.
        if is_idle and night not in evidence.certain_nights(
            starts, LEAST_NIGHTS, min(limit.certain, limits.certain), limit.by_own_past
        ):
            continue
        found = weigh(evidence, starts, night, known, is_large, limit)
        for _ in range(PER_NIGHT if ask else 0):
            recent = found
            if not recent and steps and night - steps[-1].night < RECENT_NIGHTS:
                recent = settled(evidence, steps[-1], starts, night, known)
            pair = wanted_reruns(recent, known)
            answer = ask(*pair, night) if ask and pair else None
            if not answer:
                break
            known.append(answer)
            found = weigh(evidence, starts, night, known, is_large, limit)
        if found and found.certainty == "found" and _is_between_two(steps, found):
            found = weigh(evidence, starts, night, known, is_large, limit.held)
        if found and found.certainty == "found":
            seen, place = of_night(evidence, starts, night), found.where.place
            gain = float(seen.gain[seen.first == place][0])
            if gain < evidence.line(starts, night).gain + DRIFT_MARGIN:
                drifts.append(night)
                found = None
        if found and found.certainty != "suspected":
            starts = (*starts, found.where.place)
            steps.append(found)
        elif found and night == last:
            steps.append(found)
    return Walk([settled(evidence, step, starts, last, known) for step in steps], starts, drifts)


def _is_between_two(steps: Sequence[WeighedStep], found: WeighedStep) -> bool:
    """Whether the series was at both levels before, and has come back: it is one of two by chance,
    and only a re-run tells a commit's doing from that.
    """
    return all(
        any(abs(level - each.level) < _ALIKE * abs(found.rise) for each in steps)
        for level in (found.level, found.level + found.rise)
    )


def wanted_reruns(step: WeighedStep | None, known: Sequence[PairRerun]) -> tuple[int, int] | None:
    """What to run again; nothing twice."""
    pair = None if step is None else step.next_pair
    return None if pair in [(run.before, run.after) for run in known] else pair
