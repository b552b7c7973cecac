"""A heap of a serving process's size, in a process that has a small one."""

import gc
import time
from dataclasses import dataclass, field
from typing import Any

from harness.collector.ballast import build_ballast
from harness.collector.census import load_census


@dataclass(slots=True)
class _Heap:
    """What was built here; ``is_spared``: whether all is frozen until the next `top_up` ends."""

    ballast: list[list[Any]] = field(default_factory=list)
    is_spared: bool = False


_heap = _Heap()


def top_up(role: str, target_objects: int, seed: int, *, is_timed: bool = True) -> int:
    """Build ballast until this process's collector tracks so many; returns how many were built.

    What is there already counts, frozen or not; where that is enough, nothing is built. The
    ballast is in the oldest generation and lives until `release`; ``seed`` decides its shape. Where
    no pass is timed it is empty lists: as many objects, soon built and soon passed.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        gc.collect()
        missing = target_objects - len(gc.get_objects()) - gc.get_freeze_count()
        if missing <= 0:
            return 0
        count = missing - 1  # the list that holds them is the last
        _heap.ballast.append(
            build_ballast(count, load_census(), seed) if is_timed else [[] for _ in range(count)]
        )
        gc.collect()
        return missing
    finally:
        if _heap.is_spared:
            _heap.is_spared = False
            gc.unfreeze()
            # A reference to each is counted, so memory that a fork shares is copied now and not in
            # a pass that is timed.
            gc.get_objects()
        if enabled:
            gc.enable()


def spare_until_top_up() -> None:
    """Have no collection pass over what is there until the next `top_up` has ended.

    For an interpreter that is to be forked, so that its forks are soon ready.
    """
    _heap.is_spared = True
    gc.freeze()


def release(role: str) -> None:
    """Let go of the ballast."""
    _heap.ballast.clear()


def full_pass_seconds(role: str) -> float:
    """Wall time of one full collection of this process, in seconds."""
    began = time.perf_counter()
    gc.collect()
    return time.perf_counter() - began
