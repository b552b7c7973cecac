"""`tracemalloc`, switched on for a trial."""

import tracemalloc


def start_tracing(num_frames: int = 1) -> None:
    """Keep so many frames of each allocation. Raises ValueError where somebody traces already."""
    if tracemalloc.is_tracing():
        raise ValueError(
            "tracemalloc traces the engine's process already, so what it allocates cannot be told "
            "apart; run without PYTHONTRACEMALLOC and without -X tracemalloc."
        )
    tracemalloc.start(num_frames)
