"""Tiles of the attention kernels: how much a program takes at a time. The one place to change."""

from typing import NamedTuple

import triton


class DecodeTile(NamedTuple):
    """How a program walks its keys: so many at a time, by so many warps, so many stages deep."""

    num_keys: int
    num_warps: int
    num_stages: int


class PrefillTile(NamedTuple):
    """``num_rows`` (queries x the heads of a key head) over ``num_keys`` at a time."""

    num_rows: int
    num_keys: int
    num_warps: int
    num_stages: int


DECODE_CANDIDATES = [
    DecodeTile(num_keys, num_warps, num_stages)
    for num_keys in (64, 128)
    for num_warps in (2, 4)
    for num_stages in (3, 4, 5)
]
"""What ``benchmarks/decode_tiles.py`` tries; the fastest belongs into `decode_tile`."""


def decode_tile(head_dim: int, itemsize: int) -> DecodeTile:
    """64 keys at a time, or what 16 KiB hold of them, by two warps.

    Of twelve swept on an H200 (results/published/gpu/gpu-tiles.json) it is behind the fastest by
    1.9 % at most, for OPT-125m and Llama-3-8B at each of four contexts.
    """
    row_bytes = padded_head_dim(head_dim) * itemsize
    return DecodeTile(min(64, max(16, 16384 // row_bytes)), num_warps=2, num_stages=3)


def prefill_tile(
    queries_per_request: float, group: int, head_dim: int, itemsize: int
) -> PrefillTile:
    """One of two, each compiled when it is first met: 16 rows for batches that mostly decode, whose
    tiles hold little more than a query; else 64, or 32 in float32, which would not fit registers.
    """
    mostly_decodes = queries_per_request * group <= 16
    num_rows = 16 if mostly_decodes else 64 if itemsize == 2 else 32
    num_rows = max(num_rows, triton.next_power_of_2(group))
    num_keys = 64 if padded_head_dim(head_dim) * itemsize <= 256 else 32
    return PrefillTile(num_rows, num_keys, num_warps=4 if num_rows <= 64 else 8, num_stages=2)


def padded_head_dim(head_dim: int) -> int:
    """A power of two, and no less than the 16 that a product needs."""
    return int(max(16, triton.next_power_of_2(head_dim)))
