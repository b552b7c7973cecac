"""What is known of a process's collector after a window: how it was set, what it did."""

import msgspec


class GcState(msgspec.Struct, frozen=True, kw_only=True):
    """The collector as read back from a process while its policy was in force."""

    enabled: bool
    thresholds: tuple[int, int, int]
    freeze_count: int
    tracked_objects: int


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the collector did in one process of the trial; generations 0, 1, 2.

    ``cpu_seconds``: that the process took in the window, on all its threads.
    ``pause_cpu_seconds``: of the pauses, the time for which the collecting thread had a core.
    """

    role: str
    policy: str
    state: GcState
    collections: tuple[int, int, int]
    collected: tuple[int, int, int]
    pause_seconds: tuple[float, float, float]
    max_pause_seconds: float
    full_pass_seconds: float
    probe_dropped: int = 0
    pause_cpu_seconds: tuple[float, float, float] = (0.0, 0.0, 0.0)
    cpu_seconds: float = 0.0


class PhasePauses(msgspec.Struct, frozen=True):
    """Collections of one process that began in one phase of the engine's steps."""

    role: str
    phase: str
    collections: int
    seconds: float
