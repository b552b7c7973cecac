"""What a device sustains, and where it has no room to show it."""

from itertools import accumulate, chain, repeat

import cuda_stand_in
import pytest
import torch

from engines.builtin.model import ceilings
from engines.builtin.model.ceilings import Ceilings, sustained_seconds

CPU = torch.device("cpu")
RATES = ["copy_bytes_per_second", "matmul_flops_per_second"]


def test_a_device_says_how_fast_it_copies_and_multiplies():
    asked = Ceilings(CPU, torch.float32, 1 << 16, 16)
    assert asked.since_last_asked() == {}, "it has been at work for no time"
    found = asked.since_last_asked()
    assert list(found) == RATES
    assert min(found.values()) > 0


@pytest.mark.parametrize(("worked", "measured"), [(1.0, 0.5), (4.0, 2.0), (60.0, 2.0)])
def test_it_is_measured_for_as_long_as_it_was_at_work(monkeypatch, worked, measured):
    """Both together, up to four seconds; what the measurement takes is none of it."""
    now, told = [0.0], []

    def measure(*arguments: object) -> float:
        told.append(arguments[-1])
        now[0] += 100.0
        return 1.0

    monkeypatch.setattr(ceilings.time, "perf_counter", lambda: now[0])
    for name in RATES:
        monkeypatch.setattr(ceilings, name, measure)
    asked = Ceilings(CPU, torch.float32, 1 << 16, 16)
    asked.since_last_asked()
    for _ in range(2):
        now[0] += worked
        assert asked.since_last_asked() == dict.fromkeys(RATES, 1.0)
    assert told == [measured] * 4


@pytest.mark.parametrize(("seconds", "median"), [(0.0, 1.0), (9.0, 1.0), (30.0, 3.0)])
def test_a_gpu_that_throttles_is_measured_at_the_clock_that_it_keeps(seconds, median):
    """The first five runs take a second each, all others three; the one before is warm-up."""
    clock = accumulate(chain([0.0], repeat(1.0, 5), repeat(3.0)))
    _, stack = cuda_stand_in.install(lambda: next(clock))
    runs = []
    with stack:
        took = sustained_seconds(lambda: runs.append(1), torch.device("cuda"), seconds)
    assert took == median
    total = sum([1.0] * 5 + [3.0] * (len(runs) - 7))
    assert total >= seconds, "and the last run is queued behind those that are timed"
    assert total - 3.0 < seconds or len(runs) == 7


@pytest.mark.parametrize("which", RATES)
def test_where_memory_runs_out_there_are_none(monkeypatch, which):
    def refused(*args: object) -> float:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(ceilings, which, refused)
    asked = Ceilings(CPU, torch.float32, 1 << 16, 16)
    asked.since_last_asked()
    assert asked.since_last_asked() == {}
