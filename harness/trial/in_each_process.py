"""What a trial asks of each process of its engine: a heap, a window, what the collector did in it.

The functions are shipped to those processes, where each finds the collector of its own.
"""

from engines.protocol import EngineProcess
from harness.collector import heap, window
from harness.collector.on_wait import busy_hook
from harness.collector.phase import Phase
from harness.collector.probe import Events
from harness.collector.result import ProcessResult


def prepare_process(process: EngineProcess, heap_objects: int, seed: int, is_timed: bool) -> None:
    """Bring a process of the engine to its size before anything is measured in it."""
    heap.top_up(process.role, heap_objects, seed, is_timed=is_timed)


def open_process_window(
    process: EngineProcess, policy_text: str, batch_size: int, probe: bool, phase: Phase | None
) -> str:
    """Set the collector of a process for the window; why it must be refused, or ""."""
    process.while_device_busy = busy_hook(process.role, policy_text)
    return window.open_window(process.role, policy_text, batch_size, probe, phase)


def stop_process_counting(process: EngineProcess) -> None:
    """Count nothing more in a process, whose window stays open."""
    window.stop_counting(process.role)


def close_process_window(process: EngineProcess) -> ProcessResult:
    """What the collector did in a process while the window was open."""
    process.while_device_busy = None
    result = window.close_window(process.role)
    if refusal := window.window_refusal(process.role):
        raise ValueError(refusal)
    return result


def process_window_events(process: EngineProcess) -> Events:
    """The collections that the probe of a process saw in its last window."""
    return window.window_events(process.role)
