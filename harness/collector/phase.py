"""The phase of the collector's counters when a window opens."""

import gc
import random
from typing import NamedTuple

_MAX_HELD = 1 << 16
"""Objects held at most: a phase of a huge threshold is not worth a huge heap."""

_held: list[dict[str, object]] = []


class Phase(NamedTuple):
    """Where in its cycles a collector stands; the same for every policy.

    ``seed`` decides how far the young generations' counters are. ``cycle``: the share, from 0 to
    below 1, of the way from one full pass to the next.
    """

    seed: int
    cycle: float


def set_counter_phase(role: str, phase: Phase | None) -> None:
    """Set how far this process is from its next collections; to be called last before a window.

    With None always the same phase: generations 0 and 1 are collected, so the counters are
    (0, 0, 1) and what the caller allocates from then on. The old generation is not, for after
    `gc.freeze` that would empty the total by which CPython decides on full collections.

    With a phase each counter then goes to its share of its threshold: collections of the young
    generations move the upper ones, objects that are held until the next call (65,536 at most)
    move the lowest. A full pass also waits until as many objects have come to the oldest generation
    as are a quarter of what the last one left there; a share of these is made, comes there, and is
    let go, which the collector does not count. What is frozen is then as after the first full pass
    that came by itself: no part of what the last one left.

    Where automatic collection is off no counter decides anything, and none is touched.
    """
    _held.clear()
    if not gc.isenabled():
        return
    gc.disable()
    newcomers: list[list[object]] = []
    if phase is not None:
        if gc.get_freeze_count():
            gc.collect()
        newcomers += ([] for _ in range(int(phase.cycle * _quarter_of_the_old())))
    gc.collect(1)
    newcomers.clear()
    if phase is not None:
        shares = random.Random(phase.seed)
        limit0, limit1, limit2 = gc.get_threshold()
        for _ in range(min(int(phase.cycle * (limit2 + 1)), _MAX_HELD) - 1):
            gc.collect(1)
        for _ in range(min(int(shares.random() * (limit1 + 1)), _MAX_HELD)):
            gc.collect(0)
        # An empty dictionary counts as an allocation and, up to 3.13, is not tracked.
        gen0 = int(shares.random() * (limit0 + 1))
        while gc.get_count()[0] < min(gen0, _MAX_HELD):
            _held.append({})
    gc.enable()


def _quarter_of_the_old() -> int:
    """Newcomers that CPython waits for (``long_lived_total / 4`` in ``Modules/gcmodule.c``)."""
    return len(gc.get_objects(generation=2)) // 4


def release_held(role: str) -> None:
    """Let go of the objects that hold the phase."""
    _held.clear()
