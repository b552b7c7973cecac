"""What a device can do at best, and where it has no room to show it."""

import pytest
import torch

from engines.builtin.model import ceilings

CPU = torch.device("cpu")


def test_a_device_says_how_fast_it_copies_and_multiplies():
    found = ceilings.measure_ceilings(CPU, torch.float32, 1 << 16, 16)
    assert list(found) == ["copy_bytes_per_second", "matmul_flops_per_second"]
    assert min(found.values()) > 0


@pytest.mark.parametrize("which", ["copy_bytes_per_second", "matmul_flops_per_second"])
def test_where_memory_runs_out_there_are_none(monkeypatch, which):
    def refused(*args: object) -> float:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(ceilings, which, refused)
    assert ceilings.measure_ceilings(CPU, torch.float32, 1 << 16, 16) == {}
