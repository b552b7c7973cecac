"""One schedule dealt out whole: which client process sends which request."""

import numpy as np

from engines.protocol import Int32Array, Int64Array
from workloads.schedule import Schedule


def dealt(schedule: Schedule, process: int, num_processes: int) -> Int64Array:
    """The requests of a process, int64, in the schedule's order.

    What all of them send is the schedule.
    """
    return np.flatnonzero(in_turns(schedule, num_processes) == process)


def in_turns(schedule: Schedule, count: int) -> Int64Array:
    """Which of so many has each request, int64 ``[N]``: i mod ``count``.

    Turns of a conversation go with its first, since each waits for the one before.
    """
    first = np.arange(schedule.num_requests)
    for request, previous in enumerate(schedule.previous_turn.tolist()):
        if previous >= 0:
            first[request] = first[previous]
    found: Int64Array = first % count
    return found


def own_previous_turn(schedule: Schedule, requests: Int64Array) -> Int32Array:
    """``previous_turn`` among a process's own requests, by their places there; empty without."""
    if not len(schedule.previous_turn):
        return np.zeros(0, np.int32)
    previous = schedule.previous_turn[requests]
    places = np.searchsorted(requests, previous)
    return np.where(previous < 0, -1, places).astype(np.int32)


def share_of(total: int, process: int, num_processes: int) -> int:
    """What of a number is a process's, so that all shares add up to it."""
    return total // num_processes + (process < total % num_processes)
