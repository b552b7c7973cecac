"""Which tokens decoding rows compute and where their keys go: a step's indices, at once."""
# ruff: noqa: N803
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import torch
import triton
import triton.language as tl
from torch import Tensor

from engines.builtin.model import DecodeTokens

_BLOCK = 128


def decode_tokens(
    rows: Tensor,
    progress: Tensor,
    last_tokens: Tensor,
    block_table: Tensor,
    *,
    width: int,
    block_size: int,
) -> DecodeTokens:
    """`Ops.decode_tokens`."""
    num_reqs = len(rows)
    num_tokens, device = num_reqs * width, rows.device
    wide = torch.empty((5, num_tokens), dtype=torch.int64, device=device)
    narrow = torch.empty((2, num_reqs), dtype=torch.int32, device=device)
    _decode_tokens[(triton.cdiv(num_tokens, _BLOCK),)](
        rows,
        progress,
        last_tokens,
        block_table,
        wide,
        narrow,
        num_reqs,
        num_tokens,
        progress.stride(0),
        block_table.stride(0),
        WIDTH=width,
        BLOCK_SIZE=block_size,
        BLOCK=_BLOCK,
        num_warps=4,
    )
    return DecodeTokens(*wide, *narrow)


@triton.jit(do_not_specialize=["num_reqs", "num_tokens"])
def _decode_tokens(
    rows,
    progress,
    last_tokens,
    block_table,
    wide,
    narrow,
    num_reqs,
    num_tokens,
    stride,
    stride_row,
    WIDTH: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = token < num_tokens
    request = token // WIDTH
    nth = token % WIDTH
    row = tl.load(rows + request, mask=mask, other=0)
    computed = tl.load(progress + row, mask=mask, other=0)
    position = computed + nth
    place = block_table + row * stride_row + position // BLOCK_SIZE
    block = tl.load(place, mask=mask, other=0).to(tl.int64)
    tl.store(wide + token, position, mask=mask)
    tl.store(wide + num_tokens + token, block * BLOCK_SIZE + position % BLOCK_SIZE, mask=mask)
    tl.store(wide + 2 * num_tokens + token, tl.load(last_tokens + row, mask=mask), mask=mask)
    requests = tl.load(progress + 2 * stride + row, mask=mask)
    tl.store(wide + 3 * num_tokens + token, requests, mask=mask)
    outputs = tl.load(progress + stride + row, mask=mask)
    tl.store(wide + 4 * num_tokens + token, outputs + nth, mask=mask)
    first = mask & (nth == 0)
    tl.store(narrow + request, row.to(tl.int32), mask=first)
    tl.store(narrow + num_reqs + request, (computed + WIDTH).to(tl.int32), mask=first)
