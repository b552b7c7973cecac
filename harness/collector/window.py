"""The measured window of one process: policy, counter phase and probe in force, then put back.

Its state is the module's, for a process has one collector; so the functions can be shipped to
each process of an engine.
"""

import gc
from dataclasses import dataclass, field

import numpy as np

from harness.collector.heap import full_pass_seconds
from harness.collector.phase import release_held, set_counter_phase
from harness.collector.policy import parse_policy
from harness.collector.probe import Events, Probe
from harness.collector.result import GcState, ProcessResult
from harness.collector.state import (
    Snapshot,
    apply_policy,
    check_state,
    read_state,
    restore,
    snapshot,
)


@dataclass(frozen=True, slots=True)
class _Window:
    before: Snapshot
    policy_text: str
    batch_size: int
    state: GcState
    full_pass_seconds: float
    probe: Probe | None
    stats: list[dict[str, int]]


@dataclass(slots=True)
class _Process:
    """The window that is open here, and what is left of the last one."""

    window: _Window | None = None
    events: Events = field(default_factory=lambda: Probe(capacity=0).events())
    refusal: str = ""


_process = _Process()


def open_window(
    role: str, policy_text: str, batch_size: int, probe: bool, phase_seed: int | None
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
    set_counter_phase(role, phase_seed)
    gc.disable()  # until the last line, so that no collection falls between probe and statistics
    if recorder:
        recorder.start()
    stats = gc.get_stats()
    _process.window = _Window(before, policy_text, batch_size, state, seconds, recorder, stats)
    if state.enabled:
        gc.enable()
    return ""


def collect_aside(role: str) -> None:
    """A full collection of the harness's own, which the open window does not count.

    Raises RuntimeError where no window is open.
    """
    if _process.window is None:
        raise RuntimeError(f"No window is open in the {role} process; open one first.")
    before = gc.get_stats()
    gc.collect()
    for counted, was, now in zip(_process.window.stats, before, gc.get_stats(), strict=True):
        for figure in counted:
            counted[figure] += now[figure] - was[figure]


def close_window(role: str) -> ProcessResult:
    """End the window, put the collector back and say what it did.

    ``collections`` and ``collected`` are differences of `gc.get_stats`; pauses, in seconds, are
    the probe's and zero without one. ``full_pass_seconds`` is of ``tracked_objects``, under
    ``as_is`` without the frozen ones. Raises RuntimeError where no window is open.
    """
    window = _process.window
    if window is None:
        raise RuntimeError(f"No window is open in the {role} process; open one first.")
    enabled = gc.isenabled()
    gc.disable()
    stats = gc.get_stats()
    if window.probe:
        window.probe.stop()
    events = window.probe.events() if window.probe else Probe(capacity=0).events()
    at_end = GcState(
        enabled=enabled,
        thresholds=gc.get_threshold(),
        freeze_count=gc.get_freeze_count(),
        tracked_objects=window.state.tracked_objects,
    )
    refusal = check_state(role, window.policy_text, window.batch_size, at_end)
    _process.window, _process.events, _process.refusal = None, events, refusal
    release_held(role)
    restore(window.before)
    return ProcessResult(
        role=role,
        policy=str(parse_policy(window.policy_text).for_role(role)),
        state=window.state,
        collections=_by_generation("collections", window.stats, stats),
        collected=_by_generation("collected", window.stats, stats),
        pause_seconds=_pauses(events),
        max_pause_seconds=float(events.duration_ns.max(initial=0)) / 1e9,
        full_pass_seconds=window.full_pass_seconds,
        probe_dropped=window.probe.dropped if window.probe else 0,
    )


def window_refusal(_role: str = "") -> str:
    """How the state at the last window's end was no longer what was asked for, or ""."""
    return _process.refusal


def window_events(_role: str = "") -> Events:
    """The collections that the probe of the last window saw; empty where it had none."""
    return _process.events


def _by_generation(
    figure: str, before: list[dict[str, int]], after: list[dict[str, int]]
) -> tuple[int, int, int]:
    gen0, gen1, gen2 = (b[figure] - a[figure] for a, b in zip(before, after, strict=True))
    return gen0, gen1, gen2


def _pauses(events: Events) -> tuple[float, float, float]:
    gen0, gen1, gen2 = np.bincount(events.generation, events.duration_ns, minlength=3) / 1e9
    return float(gen0), float(gen1), float(gen2)
