"""In which phase of a step the collector stopped it, by process."""

import numpy as np

from engines.protocol import PHASES
from harness.collector.result import PhasePauses
from harness.trial.observation import Observation

BETWEEN = "between steps"
"""In the client's own code, or where nobody asks for a step."""


def phase_pauses(seen: Observation) -> list[PhasePauses]:
    """One for each process and phase with a collection, in the order of processes and phases.

    A collection is counted where it began. Processes share one clock, so one that began in a worker
    is in the phase in which the engine was at that moment.
    """
    edges = seen.steps[:, : len(PHASES) + 1].ravel()
    names = [*PHASES, BETWEEN]
    found = []
    for process, events in zip(seen.processes, seen.events, strict=False):
        place = np.searchsorted(edges, events.start_ns, side="right") - 1
        phase = np.where(place < 0, len(PHASES), place % len(names))
        counts = np.bincount(phase, minlength=len(names))
        paused = np.bincount(phase, events.duration_ns, len(names))
        found += [
            PhasePauses(process.role, name, int(count), float(ns) / 1e9)
            for name, count, ns in zip(names, counts, paused, strict=True)
            if count
        ]
    return found
