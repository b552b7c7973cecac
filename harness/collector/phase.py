"""The phase of the collector's counters when a window opens."""

import gc
import random

_MAX_HELD = 1 << 16
"""Objects held at most: a phase of a huge threshold is not worth a huge heap."""

_held: list[dict[str, object]] = []


def set_counter_phase(role: str, seed: int | None) -> None:
    """Set how far this process is from its next collections; to be called last before a window.

    With None always the same phase: generations 0 and 1 are collected, so the counters are
    (0, 0, 1) and what the caller allocates from then on. The old generation is not, for after
    `gc.freeze` that would empty the total by which CPython decides on full collections.

    With a seed, each counter then goes to a share of its threshold that the seed alone decides,
    the same for every policy: collections of the young generations move the upper ones, objects
    that are held until the next call (65,536 at most) move the lowest.

    Where automatic collection is off no counter decides anything, and none is touched.
    """
    _held.clear()
    if not gc.isenabled():
        return
    gc.disable()
    gc.collect(1)
    if seed is not None:
        shares = random.Random(seed)
        gen0, gen1, gen2 = (int(shares.random() * (limit + 1)) for limit in gc.get_threshold())
        for _ in range(min(gen2, _MAX_HELD) - 1):
            gc.collect(1)
        for _ in range(min(gen1, _MAX_HELD)):
            gc.collect(0)
        # An empty dictionary counts as an allocation and, up to 3.13, is not tracked.
        while gc.get_count()[0] < min(gen0, _MAX_HELD):
            _held.append({})
    gc.enable()


def release_held(role: str) -> None:
    """Let go of the objects that hold the phase."""
    _held.clear()
