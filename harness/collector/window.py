"""The measured window of one process: policy, counter phase and probe in force, then put back.

Its state is the module's, for a process has one collector; so the functions can be shipped to
each process of an engine.
"""

import gc
import math
import time
from array import array
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from harness.collector.heap import full_pass_seconds
from harness.collector.phase import Phase, release_held, set_counter_phase
from harness.collector.policy import parse_policy
from harness.collector.probe import Events, Probe
from harness.collector.result import GcState, ProcessResult
from harness.collector.state import (
    CollectorSnapshot,
    apply_policy,
    check_state,
    read_state,
    restore,
    snapshot,
)

_FIGURES = ("collections", "collected")
_NUM_SETTINGS = 5


@dataclass(slots=True)
class _Window:
    before: CollectorSnapshot
    policy_text: str
    batch_size: int
    state: GcState
    full_pass_seconds: float
    probe: Probe | None
    stats: list[dict[str, int]]
    # What `stop_counting` finds. Taken beforehand, so that who counts objects after it finds none.
    end: "array[int]" = field(
        default_factory=lambda: array("q", bytes(8 * (_NUM_SETTINGS + 3 * len(_FIGURES))))
    )
    is_counting: bool = True
    # Since it opened, once it is no longer counted; not an object more for who counts those.
    cpu_ns: int = 0


@dataclass(slots=True)
class _Process:
    """The window that is open here, and what is left of the last one."""

    window: _Window | None = None
    events: Events = field(default_factory=lambda: Probe(capacity=0).events())
    refusal: str = ""


_process = _Process()


def open_window(
    role: str, policy_text: str, batch_size: int, probe: bool, phase: Phase | None
) -> str:
    """Put the policy in force and start counting; say in one sentence why not, or "".

    In this order: all is unfrozen (unless ``as_is``) and collected, a full pass timed, the
    policy applied and read back, the counters' phase set, the probe started, `gc.get_stats`
    read. Where the state read back is not what was asked for, all is put back at once. Raises
    ValueError as `parse_policy`, RuntimeError where a window is open.
    """
    if _process.window is not None:
        raise RuntimeError(f"A window is open in the {role} process; close it first.")
    policy = parse_policy(policy_text).for_role(role)
    before = snapshot()
    if "as_is" not in policy:
        gc.unfreeze()
    seconds = full_pass_seconds(role)
    apply_policy(role, policy_text, batch_size)
    state = read_state()
    refusal = check_state(role, policy_text, batch_size, state)
    if refusal:
        restore(before)
        return refusal
    recorder = Probe() if probe else None
    set_counter_phase(role, phase)
    gc.disable()  # until the last line, so that no collection falls between probe and statistics
    if recorder:
        recorder.start()
    stats = gc.get_stats()
    _process.window = _Window(before, policy_text, batch_size, state, seconds, recorder, stats)
    _process.window.cpu_ns -= time.process_time_ns()
    if state.enabled:
        gc.enable()
    return ""


def stop_counting(role: str) -> None:
    """Count nothing from here on; the policy stays in force until the window is closed.

    A second call changes nothing. Raises RuntimeError where no window is open.
    """
    window = _opened(role)
    if not window.is_counting:
        return
    window.is_counting = False
    window.cpu_ns += time.process_time_ns()
    enabled = gc.isenabled()
    gc.disable()
    stats = gc.get_stats()
    if window.probe:
        window.probe.stop()
    found = [enabled, *gc.get_threshold(), gc.get_freeze_count()]
    found += [generation[figure] for figure in _FIGURES for generation in stats]
    for place, number in enumerate(found):
        window.end[place] = number
    if enabled:
        gc.enable()


def collect_aside(role: str) -> None:
    """Full collections of the harness's own until no object less is tracked.

    One is not enough: it untracks a tuple only where it met those within it first, and the
    constants of a module that was just loaded lie the other way round, a floor to each
    collection. The open window counts none of them. Raises RuntimeError where none is open.
    """
    window = _opened(role)
    before = gc.get_stats()
    fewest = math.inf
    while (tracked := len(gc.get_objects())) < fewest:
        fewest = tracked
        gc.collect()
    if not window.is_counting:
        return
    for counted, was, now in zip(window.stats, before, gc.get_stats(), strict=True):
        for figure in counted:
            counted[figure] += now[figure] - was[figure]


def close_window(role: str) -> ProcessResult:
    """End the window, put the collector back and say what it did.

    ``collections`` and ``collected`` are differences of `gc.get_stats`; pauses, in seconds, are
    the probe's and zero without one, as is ``full_pass_seconds``, which is of ``tracked_objects``,
    under ``as_is`` without the frozen ones. Raises RuntimeError where no window is open.
    """
    stop_counting(role)
    window = _opened(role)
    gc.disable()
    enabled, gen0, gen1, gen2, freeze_count, *counts = window.end
    at_end = GcState(
        enabled=bool(enabled),
        thresholds=(gen0, gen1, gen2),
        freeze_count=freeze_count,
        tracked_objects=window.state.tracked_objects,
    )
    events = window.probe.events() if window.probe else Probe(capacity=0).events()
    refusal = check_state(role, window.policy_text, window.batch_size, at_end)
    _process.window, _process.events, _process.refusal = None, events, refusal
    release_held(role)
    restore(window.before)
    return ProcessResult(
        role=role,
        policy=str(parse_policy(window.policy_text).for_role(role)),
        state=window.state,
        collections=_by_generation("collections", window.stats, counts),
        collected=_by_generation("collected", window.stats, counts),
        pause_seconds=_seconds(events, events.duration_ns),
        pause_cpu_seconds=_seconds(events, events.cpu_ns),
        max_pause_seconds=float(events.duration_ns.max(initial=0)) / 1e9,
        full_pass_seconds=window.full_pass_seconds if window.probe else 0.0,
        probe_dropped=window.probe.dropped if window.probe else 0,
        cpu_seconds=window.cpu_ns / 1e9,
    )


def _opened(role: str) -> _Window:
    if _process.window is None:
        raise RuntimeError(f"No window is open in the {role} process; open one first.")
    return _process.window


def window_refusal(_role: str = "") -> str:
    """How the state at the last window's end was no longer what was asked for, or ""."""
    return _process.refusal


def window_events(_role: str = "") -> Events:
    """The collections that the probe of the last window saw; empty where it had none."""
    return _process.events


def _by_generation(
    figure: str, before: list[dict[str, int]], after: list[int]
) -> tuple[int, int, int]:
    begin = 3 * _FIGURES.index(figure)
    gen0, gen1, gen2 = (
        b - a[figure] for a, b in zip(before, after[begin : begin + 3], strict=True)
    )
    return gen0, gen1, gen2


def _seconds(events: Events, nanoseconds: NDArray[np.int64]) -> tuple[float, float, float]:
    gen0, gen1, gen2 = np.bincount(events.generation, nanoseconds, minlength=3) / 1e9
    return float(gen0), float(gen1), float(gen2)
