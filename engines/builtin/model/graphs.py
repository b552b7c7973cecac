"""Decode steps captured as CUDA graphs, one a padded batch size, all in one pool of memory."""

import gc
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

Run = Callable[[int], Any]
"""Runs a decode step of so many rows on static tensors; what it returns is where its results
are, and is overwritten by the next replay."""


class DecodeGraphs:
    """Replays the smallest captured size that holds a batch."""

    def __init__(self, largest: int) -> None:
        self.sizes = capture_sizes(largest)
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, Any]] = {}

    def capture(self, run: Run) -> None:
        """All sizes, the largest first: the smaller ones fit into the memory that it takes.

        Raises ValueError where memory runs out.
        """
        pool = torch.cuda.graph_pool_handle()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with _no_collection():
            for size in reversed(self.sizes):
                try:
                    with torch.cuda.stream(stream):
                        run(size)  # compiles what is not compiled yet, which a capture cannot
                    graph = torch.cuda.CUDAGraph()
                    with torch.cuda.graph(graph, pool=pool, stream=stream):
                        results = run(size)
                except RuntimeError as error:
                    self._graphs.clear()
                    if not _is_out_of_memory(error):
                        raise
                    raise ValueError(
                        f"out of GPU memory when capturing the graph of {size} requests; use "
                        "--axis enforce-eager=on, a smaller --batch-size, or fewer "
                        "--axis num-gpu-blocks-override"
                    ) from None
                self._graphs[size] = graph, results
        torch.cuda.current_stream().wait_stream(stream)
        # What the runs before the captures took is the other stream's: an eager pass needs it.
        torch.cuda.empty_cache()

    def size_for(self, num_reqs: int) -> int:
        """The rows that a batch of ``num_reqs`` is padded to."""
        return self.sizes[bisect_left(self.sizes, num_reqs)]

    def replay(self, size: int) -> Any:
        """Run a captured step; where its results will be."""
        graph, results = self._graphs[size]
        graph.replay()
        return results


def capture_sizes(largest: int) -> list[int]:
    """Powers of two, from 128 on three more between them, and ``largest`` itself.

    A batch that empties passes through all of them; rows of padding, from there on a fifth of a
    graph's at most, cost their products alone.
    """
    sizes = [1 << power for power in range(largest.bit_length())]
    sizes += [size + size // 4 * more for size in sizes if size >= 128 for more in (1, 2, 3)]
    return [*sorted(size for size in sizes if size < largest), largest]


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Also where ending the capture failed because of it: that error is the one that comes out."""
    while error is not None and not isinstance(error, torch.cuda.OutOfMemoryError):
        error = error.__context__
    return error is not None


@contextmanager
def _no_collection() -> Iterator[None]:
    """A collection during a capture may free tensors of other graphs, which invalidates it."""
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
