"""What a device can do at best, measured on it: copying memory and multiplying matrices."""

import time
from collections.abc import Callable

import torch
from torch import Tensor

_TIMES = 5


def measure_ceilings(
    device: torch.device, dtype: torch.dtype, num_bytes: int, size: int
) -> dict[str, float]:
    """Both by their names in `StepEngine.device_stats`; empty where a GPU's memory runs out."""
    try:
        found = {
            "copy_bytes_per_second": copy_bytes_per_second(device, num_bytes),
            "matmul_flops_per_second": matmul_flops_per_second(device, dtype, size),
        }
    except torch.OutOfMemoryError:
        found = {}
    torch.cuda.empty_cache()
    return found


def copy_bytes_per_second(device: torch.device, num_bytes: int) -> float:
    """Of a copy within its memory, bytes read and written; the best of several.

    ``num_bytes`` should be far more than its caches hold.
    """
    source = torch.empty(num_bytes, dtype=torch.uint8, device=device).fill_(1)
    target = torch.empty_like(source)
    return 2 * num_bytes / _shortest(lambda: target.copy_(source), device)


def matmul_flops_per_second(device: torch.device, dtype: torch.dtype, size: int) -> float:
    """Of a product of two random square matrices, two operations a multiply-add; the best."""
    a = torch.randn(size, size, device=device).to(dtype)
    b = torch.randn(size, size, device=device).to(dtype)
    return 2 * size**3 / _shortest(lambda: torch.matmul(a, b), device)


def _shortest(run: Callable[[], Tensor], device: torch.device) -> float:
    run()
    return min(_seconds(run, device) for _ in range(_TIMES))


def _seconds(run: Callable[[], Tensor], device: torch.device) -> float:
    if device.type == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin
