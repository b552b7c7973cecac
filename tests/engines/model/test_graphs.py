"""Which sizes are captured, and what a capture says that runs out of memory."""

from itertools import pairwise

import cuda_stand_in
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engines.builtin.model.graphs import DecodeGraphs, capture_sizes


@given(largest=st.integers(1, 5000))
def test_sizes_are_few_and_waste_little(largest):
    sizes = capture_sizes(largest)
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == largest
    assert len(sizes) <= 8 + 4 * max(0, largest.bit_length() - 7)
    for smaller, size in pairwise(sizes):
        assert size <= 2 * smaller
        assert smaller < 128 or size <= 1.25 * smaller


def test_a_batch_of_a_thousand_takes_twenty_graphs():
    assert len(capture_sizes(1024)) == 20


def test_rows_of_padding_are_a_fifth_at_most():
    sizes = DecodeGraphs(1024)
    assert [sizes.size_for(rows) for rows in (129, 513, 641, 897)] == [160, 640, 768, 1024]


def captured(run) -> None:
    _, stack = cuda_stand_in.install()
    with stack:
        DecodeGraphs(8).capture(run)


@pytest.mark.parametrize("within_capture", [False, True])
def test_no_memory_is_one_sentence(within_capture):
    """Also where what comes out of the capture is that ending it has failed."""
    runs = []

    def run(size: int) -> None:
        runs.append(size)
        if size == 2 and (len(runs) % 2 == 0) == within_capture:
            raise torch.OutOfMemoryError("CUDA out of memory")

    sentence = (
        "out of GPU memory when capturing the graph of 2 requests; use --axis enforce-eager=on"
    )
    with pytest.raises(ValueError, match=sentence):
        captured(run)


@pytest.mark.slow
def test_another_error_of_a_capture_is_not_called_a_lack_of_memory():
    def run(size: int) -> None:
        torch.ones(size).sum().item()

    with pytest.raises(RuntimeError, match="CUDA error"):
        captured(run)
