"""What traces a trial's process: one at a time."""

import tracemalloc

from gcbench.opcodes import tracers


def start_tracing(num_frames: int = 1) -> None:
    """Keep so many frames of each allocation. Raises ValueError where somebody traces already."""
    if tracemalloc.is_tracing():
        raise ValueError(
            "tracemalloc traces the engine's process already, so what it allocates cannot be told "
            "apart; run without PYTHONTRACEMALLOC and without -X tracemalloc."
        )
    tracemalloc.start(num_frames)


def refuse_other_tracers() -> None:
    """Raise ValueError where something else traces this process: counts would be wrong."""
    if others := tracers():
        raise ValueError(
            f"{others[0]!r} traces the engine's process, so its bytecodes cannot be counted; "
            "run without it (coverage or a debugger?)."
        )
