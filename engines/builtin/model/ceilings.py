"""What a device sustains, measured on it: copying memory and multiplying matrices."""

import time
from collections import deque
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import Tensor

_MOST_SECONDS = 2.0
"""Of either measurement: a window of twice that or more is followed by one of four seconds."""
_FEWEST = 5


class Ceilings:
    """A device's own rates, for as long as it is at work between two questions.

    ``num_bytes``: of the copy, far more than its caches hold; ``size``: of the square matrices.
    """

    def __init__(self, device: torch.device, dtype: torch.dtype, num_bytes: int, size: int) -> None:
        self._device, self._dtype = device, dtype
        self._num_bytes, self._size = num_bytes, size
        self._asked: float | None = None

    def since_last_asked(self) -> dict[str, float]:
        """Both by their names in `StepEngine.device_stats`, each measured for half as long as has
        passed since the last call, or for two seconds where that is less: a device that was at
        work has the clock now that it had then. Empty at the first call, and where a GPU's memory
        runs out.
        """
        before, self._asked = self._asked, time.perf_counter()
        if before is None:
            return {}
        seconds = min(_MOST_SECONDS, (self._asked - before) / 2)
        try:
            return {
                "copy_bytes_per_second": copy_bytes_per_second(
                    self._device, self._num_bytes, seconds
                ),
                "matmul_flops_per_second": matmul_flops_per_second(
                    self._device, self._dtype, self._size, seconds
                ),
            }
        except torch.OutOfMemoryError:
            return {}
        finally:
            torch.cuda.empty_cache()
            self._asked = time.perf_counter()


def copy_bytes_per_second(device: torch.device, num_bytes: int, seconds: float) -> float:
    """Of a copy within its memory, bytes read and written; see `sustained_seconds`."""
    source = torch.empty(num_bytes, dtype=torch.uint8, device=device).fill_(1)
    target = torch.empty_like(source)
    return 2 * num_bytes / sustained_seconds(lambda: target.copy_(source), device, seconds)


def matmul_flops_per_second(
    device: torch.device, dtype: torch.dtype, size: int, seconds: float
) -> float:
    """Of a product of two random square matrices, two operations a multiply-add."""
    a = torch.randn(size, size, device=device).to(dtype)
    b = torch.randn(size, size, device=device).to(dtype)
    return 2 * size**3 / sustained_seconds(lambda: torch.matmul(a, b), device, seconds)


def sustained_seconds(run: Callable[[], Tensor], device: torch.device, seconds: float) -> float:
    """The median of runs one right after the other, for so long, and five at least.

    A GPU always has the next one queued, so that it rests no more than between steps.
    """
    run()
    took: list[float] = []
    moments = deque([_moment(device)])
    left = seconds
    while len(took) < _FEWEST or left > 0:
        run()
        moments.append(_moment(device))
        if len(moments) > 2:
            took.append(_seconds_between(moments.popleft(), moments[0]))
            left -= took[-1]
    return median(took)


def _moment(device: torch.device) -> Any:
    """When what has been asked of the device is done; a CPU has done it."""
    if device.type != "cuda":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _seconds_between(begin: Any, end: Any) -> float:
    if isinstance(end, float):
        return float(end - begin)
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1e3
