"""Everything recorded in one trial's window, before any metric is made of it."""

from typing import NamedTuple, TypeVar

import numpy as np

from engines.protocol import PHASES, Int64Array
from harness.collector.probe import Events
from harness.collector.result import ProcessResult
from harness.trial.recorder import STEP_COLUMNS, RequestStamps
from workloads.schedule import Schedule

Values = dict[str, float | None]
Amount = TypeVar("Amount", int, float)
"""Metrics by name, in the units of `harness.metrics`; None where a trial cannot give one."""


OLDEST = 2
"""The generation whose collection is a full pass."""


class Observation(NamedTuple):
    """Everything recorded in one trial's window; nanoseconds.

    ``events`` and ``processes`` in the same order, one a process of the engine;
    ``scheduler_stats`` and ``wire_seconds`` as `StepEngine` names them, ``device_work`` as
    `StepEngine.device_stats` does: the work of the window, and the ceilings.
    ``counts_lateness``: whether the time by which modelled waits overran is in the stamps.
    """

    schedule: Schedule
    requests: RequestStamps
    steps: Int64Array
    gaps: Int64Array
    window_ns: int
    events: list[Events]
    processes: list[ProcessResult]
    wire_bytes: int
    wire_seconds: dict[str, float]
    scheduler_stats: dict[str, int]
    device_work: dict[str, float]
    watched: Values
    peak_rss: int
    counts_lateness: bool = True

    @property
    def engine(self) -> int:
        """The place of the process that has the engine core."""
        return [process.role for process in self.processes].index("engine")

    def column(self, name: str) -> Int64Array:
        """A column of ``steps``."""
        return self.steps[:, STEP_COLUMNS.index(name)]

    @property
    def length_ns(self) -> Int64Array:
        """How long each step took its caller: an engine's own stamps may leave something out."""
        return self.column("took_ns")

    @property
    def host_ns(self) -> Int64Array:
        """Of that, the time in which neither the device nor a core was waited for."""
        wait = self.phase("wait") if self.tells_phases else self.length_ns
        at_work = self.length_ns - np.minimum(self.column("device_ns"), wait)
        return at_work - np.minimum(self.column("waited_ns"), at_work)

    @property
    def full_pass_ns(self) -> Int64Array:
        """Full passes of the engine's own collector in each step, by the clock of `host_ns`."""
        events, start = self.events[self.engine], self.column("start")
        step = np.searchsorted(start, events.start_ns, side="right") - 1
        counts = (events.generation == OLDEST) & (step >= 0)
        took = events.cpu_ns if self.column("waited_ns").any() else events.duration_ns
        passed = np.bincount(step[counts], took[counts], len(start))
        return np.minimum(passed.astype(np.int64), self.host_ns)

    @property
    def waited_share(self) -> float:
        """Of the window, the time in which others had the core of a step under way."""
        return float(self.column("waited_ns").sum() / self.window_ns) if self.window_ns else 0.0

    @property
    def tells_phases(self) -> bool:
        """Whether the engine tells the phases of a step apart, or has it all in the first."""
        return any(self.phase(name).any() for name in PHASES[1:])

    def phase(self, name: str) -> Int64Array:
        """Length of a phase in each step."""
        end = 1 + PHASES.index(name)
        return self.steps[:, end] - self.steps[:, end - 1]


def device_work(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """What a device did between two answers of `StepEngine.device_stats`, and its ceilings."""
    return {
        name: value if name.endswith("_per_second") else value - before[name]
        for name, value in after.items()
    }


def risen(before: dict[str, Amount], after: dict[str, Amount]) -> dict[str, Amount]:
    """How far counters have come."""
    return {name: count - before[name] for name, count in after.items()}
