"""How fast the machine was in each round, and figures as they are at its usual speed.

A modelled device waits as long on a slow machine as on a fast one, and host time does not. A round
that finds the machine slow has less throughput in each cell, by its own share of host time, so the
ratio of two cells moves with the machine. Cells that take turns have found the same one.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from harness.axes import Cell
from harness.metrics import METRICS
from harness.trial.spec import TrialResult

TimedResults = Mapping[Cell, Mapping[int, TrialResult]]
"""What was timed, by cell and round."""

_WORTH_SAYING = 1.25


def slowdowns(cells: Iterable[Mapping[int, TrialResult]]) -> dict[int, float]:
    """By round, how many times as long as usual the host time of a step was in cells that took
    turns: the median over the cells, each against its own median over rounds.
    """
    relative: dict[int, list[float]] = {}
    for rounds in cells:
        host = {number: seconds for number, result in rounds.items() if (seconds := _host(result))}
        for number, seconds in host.items():
            relative.setdefault(number, []).append(seconds / float(np.median([*host.values()])))
    return {number: float(np.median(each)) for number, each in relative.items()}


def at_usual_speed(rotations: Sequence[Sequence[Cell]], timings: TimedResults) -> TimedResults:
    """The results, those of cells that took turns with wall times as at the usual speed."""
    found = dict(timings)
    for rotation in rotations:
        slow = slowdowns(timings[cell] for cell in rotation)
        for cell in rotation:
            found[cell] = {
                number: _at(result, slow.get(number, 1.0))
                for number, result in timings[cell].items()
            }
    return found


def speed_changes(rotations: Sequence[Sequence[Cell]], timings: TimedResults) -> list[str]:
    """A sentence where the machine was not equally fast in all rounds."""
    spreads = []
    for rotation in rotations:
        slow = slowdowns(timings[cell] for cell in rotation).values()
        spreads += [max(slow) / min(slow)] if slow else []
    if not spreads or max(spreads) < _WORTH_SAYING:
        return []
    return [
        f"The machine itself was up to {max(spreads):.1f} times as fast in one round as in "
        "another; ratios are those at its usual speed."
    ]


def _host(result: TrialResult) -> float:
    """Host time of a step without full passes, in seconds; 0 where it is not known."""
    full = result.metrics.get("gc_full_pass_host_share") or 0.0
    return (result.metrics.get("host_time_per_step") or 0.0) * _own(result) * (1 - full)


def _own(result: TrialResult) -> float:
    """The share of the host time that is work: launching on a modelled device is a wait, too."""
    host = result.metrics.get("host_time_per_step")
    launch = result.metrics.get("phase_launch") if result.cell.device_profile else None
    return 1 - (launch or 0.0) / host if host else 1.0


def _at(result: TrialResult, slowdown: float) -> TrialResult:
    changed: dict[str, float] = {}
    seconds = result.window_seconds
    for metric in METRICS.values():
        value, host = (result.metrics.get(name) for name in (metric.name, metric.host_share))
        if value is None or host is None:
            continue
        kept = 1 - host * _own(result) * (1 - 1 / slowdown)
        changed[metric.name] = value * kept if metric.direction == "lower" else value / kept
        full = result.metrics.get(metric.full_passes) or 0.0
        changed[metric.full_passes] = full / slowdown / kept
        if metric.name == "seconds_per_request":
            seconds *= kept
    metrics = result.metrics | changed
    return msgspec.structs.replace(result, metrics=metrics, window_seconds=seconds)
