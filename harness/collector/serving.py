"""The collector of a process that serves: a policy in force until it ends, totals at any time.

Its state is the module's, for a process has one collector; so the functions can be shipped to
each process of an engine.
"""

import gc
from array import array
from time import perf_counter_ns
from typing import Any

from engines.protocol import EngineProcess
from harness.collector import heap
from harness.collector.on_wait import busy_hook
from harness.collector.policy import parse_policy
from harness.collector.state import (
    CollectorSnapshot,
    apply_policy,
    check_state,
    read_state,
    restore,
    snapshot,
)


class PauseTotals:
    """Sums pauses by generation as they end: a server has too many collections to keep each.

    Like `Probe` the last callback at a start and the first at an end, and without a tracked object
    of its own.
    """

    def __init__(self) -> None:
        self._totals_ns = array("q", bytes(24))
        totals, began = memoryview(self._totals_ns), 0

        def begin(phase: str, info: dict[str, Any]) -> None:
            nonlocal began
            if phase == "start":
                began = perf_counter_ns()

        def end(phase: str, info: dict[str, Any]) -> None:
            if phase == "stop":
                generation = info["generation"]
                totals[generation] = totals[generation] + perf_counter_ns() - began

        self._begin, self._end = begin, end

    def start(self) -> None:
        """Sum from now on."""
        gc.callbacks.append(self._begin)
        gc.callbacks.insert(0, self._end)

    def stop(self) -> None:
        """Sum no more."""
        gc.callbacks.remove(self._end)
        gc.callbacks.remove(self._begin)

    def seconds(self) -> tuple[float, ...]:
        """By generation."""
        return tuple(each / 1e9 for each in self._totals_ns)


class _Process:
    """What `settle` has set here; None before."""

    before: CollectorSnapshot | None = None
    pauses: PauseTotals | None = None


def settle(
    process: EngineProcess, policy_text: str, batch_size: int, heap_objects: int, seed: int
) -> str:
    """Top the heap up, collect fully, put the policy in force; why that cannot be, or "".

    ``heap_objects`` and ``seed`` as `heap.top_up` takes them, the rest as `apply_policy`. Raises
    ValueError as `parse_policy`, RuntimeError where it was called before.
    """
    if _Process.before is not None:
        raise RuntimeError(f"the {process.role} process has been settled before")
    heap.top_up(process.role, heap_objects, seed)
    process.while_device_busy = busy_hook(process.role, policy_text)
    before = snapshot()
    if "as_is" not in parse_policy(policy_text).for_role(process.role):
        gc.unfreeze()
    gc.collect()
    apply_policy(process.role, policy_text, batch_size)
    if refusal := check_state(process.role, policy_text, batch_size, read_state()):
        restore(before)
        return refusal
    _Process.before, _Process.pauses = before, PauseTotals()
    _Process.pauses.start()
    return ""


def totals(process: EngineProcess) -> dict[str, tuple[float, ...]]:
    """By generation: ``gc_collections`` of this process since it began, as `gc.get_stats` counts
    them, and ``gc_pause_seconds`` since it was settled.
    """
    return {
        "gc_collections": tuple(each["collections"] for each in gc.get_stats()),
        "gc_pause_seconds": _Process.pauses.seconds() if _Process.pauses else (0.0, 0.0, 0.0),
    }


def unsettle() -> None:
    """Put back what `settle` has changed in this process, if it was called."""
    if _Process.before is not None and _Process.pauses is not None:
        _Process.pauses.stop()
        restore(_Process.before)
        heap.release("")
    _Process.before = _Process.pauses = None
