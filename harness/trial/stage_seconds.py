"""Where a trial's seconds went, from the start of its process to its result."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Moments(NamedTuple):
    """When a stage was over, by `time.perf_counter`; ``asked`` and ``turned``: for its turn, and
    when it came; ``closed``: the window, ``length_seconds`` of which were its own. ``built``: see
    `engines.protocol.StepEngine.build_seconds`.
    """

    began: float
    stood: float
    filled: float
    asked: float
    turned: float
    opened: float
    closed: float
    length_seconds: float
    built: Mapping[str, float]


def stage_seconds(at: Moments) -> dict[str, float]:
    """Of each stage in its order: ``start`` the interpreter and its imports, or the fork;
    ``engine`` is built, less the stages of that which it names itself, and those; ``heap`` filled;
    ``warm_up``; ``window``; ``end`` until now; ``turn``: others' meanwhile.
    """
    now = time.perf_counter()
    window = at.closed - at.opened
    engine = at.stood - at.began - sum(at.built.values())
    turn = at.turned - at.asked
    return {
        "start": max(0.0, _age_seconds() - (now - at.began)),
        "engine": engine,
        **at.built,
        "heap": at.filled - at.stood,
        "warm_up": at.opened - at.filled - turn,
        "window": at.length_seconds,
        "end": now - at.closed,
        "turn": turn + window - at.length_seconds,
    }


def _age_seconds() -> float:
    """Of this process, as exact as a tick of the kernel's."""
    after_name = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begun = int(after_name[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - begun
