"""Attention of one query a request over a paged cache, each request's keys in several splits."""
# ruff: noqa: N803
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import math
from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from engines.builtin.model import ForwardBatch
from engines.builtin.model.kernels.attend import attend, dot_type
from engines.builtin.model.kernels.tiles import DecodeTile, decode_tile, padded_head_dim

PROGRAMS_PER_SM = 4
MAX_SPLITS = 64


def choose_num_splits(num_programs: int, max_tiles: int, num_sms: int) -> int:
    """Into how many parts a request's keys are cut, a power of two.

    Enough that ``num_programs`` (requests x key heads) times it gives every multiprocessor
    `PROGRAMS_PER_SM`; no more than the longest context has tiles.
    """
    num_splits = 1
    while num_programs * num_splits < PROGRAMS_PER_SM * num_sms and 2 * num_splits <= min(
        max_tiles, MAX_SPLITS
    ):
        num_splits *= 2
    return num_splits


def paged_decode(
    q: Tensor,
    cache: Tensor,
    batch: ForwardBatch,
    scale: float,
    num_splits: int | None = None,
    tile: DecodeTile | None = None,
) -> Tensor:
    """`Ops.attention` where ``batch.max_query_len`` is 1, so that query ``i`` is request ``i``'s.

    ``q`` float16, bfloat16 or float32 ``[R, num_heads, head_dim]``, its last dimension contiguous;
    a request with no keys (``seq_len`` 0) gets zeros. Grid and buffers follow from shapes and
    ``batch.max_seq_len``: it may be captured in a CUDA graph. Split-KV as in flash-decoding (Dao,
    Haziza, Massa and Sizov 2023). ``num_splits`` must be a power of two.
    """
    num_reqs, num_heads, head_dim = q.shape
    num_kv_heads, block_size = cache.shape[2:4]
    group = num_heads // num_kv_heads
    num_keys, num_warps, num_stages = tile or decode_tile(head_dim, q.element_size())
    most_splits = num_splits
    if num_splits is None or most_splits is None:
        # By what there is, in a kernel compiled once for the most that there can be.
        most_splits, num_splits = (
            choose_num_splits(num_reqs * num_kv_heads, length // num_keys, _num_sms(q.device))
            for length in (batch.block_table.shape[1] * block_size, batch.max_seq_len)
        )
    out = torch.empty((num_reqs, num_heads, head_dim), dtype=q.dtype, device=q.device)
    partial, lse = out, out
    if most_splits > 1:
        rows = (num_reqs, num_heads, num_splits)
        partial = torch.empty((*rows, head_dim), dtype=torch.float32, device=q.device)
        lse = torch.empty(rows, dtype=torch.float32, device=q.device)
    padded = padded_head_dim(head_dim)
    # Key heads first: programs that run at the same time read neighbouring memory.
    _decode[(num_kv_heads, num_splits, num_reqs)](
        q,
        cache[0],
        cache[1],
        partial,
        lse,
        batch.rows,
        batch.seq_lens,
        batch.block_table,
        num_splits,
        scale * math.log2(math.e),
        q.stride(0),
        q.stride(1),
        cache.stride(1),
        cache.stride(2),
        batch.block_table.stride(0),
        GROUP=group,
        ROWS=max(16, triton.next_power_of_2(group)),
        HEAD_DIM=head_dim,
        HEAD_DIM_PADDED=padded,
        BLOCK_SIZE=block_size,
        KEYS=num_keys,
        SPLIT=most_splits > 1,
        DOT=dot_type(q.dtype),
        num_warps=num_warps,
        num_stages=num_stages,
    )
    if most_splits > 1:
        _combine[(num_reqs * num_heads,)](
            partial,
            lse,
            out,
            num_splits,
            HEAD_DIM=head_dim,
            HEAD_DIM_PADDED=padded,
            MOST_SPLITS=most_splits,
            num_warps=1,
        )
    return out


@lru_cache
def _num_sms(device: torch.device) -> int:
    """1 where the interpreter runs the kernels."""
    if device.type != "cuda":
        return 1
    return torch.cuda.get_device_properties(device).multi_processor_count


# Where in a step's one transfer its arrays begin varies: no variant compiled for each alignment.
@triton.jit(
    do_not_specialize=["num_splits"],
    do_not_specialize_on_alignment=["rows", "seq_lens", "block_table"],
)
def _decode(
    q,
    k_cache,
    v_cache,
    partial,
    lse,
    rows,
    seq_lens,
    block_table,
    num_splits,
    scale,
    stride_q,
    stride_q_head,
    stride_block,
    stride_head,
    stride_row,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_DIM_PADDED: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    KEYS: tl.constexpr,
    SPLIT: tl.constexpr,
    DOT: tl.constexpr,
):
    kv_head = tl.program_id(0)
    split = tl.program_id(1)
    request = tl.program_id(2)
    seq_len = tl.load(seq_lens + request)
    per_split = (seq_len + num_splits * KEYS - 1) // (num_splits * KEYS) * KEYS
    start = split * per_split
    end = tl.minimum(start + per_split, seq_len)

    # The query heads of the key head are the rows of a product, which has 16 at least.
    row = tl.arange(0, ROWS)
    d = tl.arange(0, HEAD_DIM_PADDED)
    stored = (row < GROUP)[:, None] & (d < HEAD_DIM)[None, :]
    head = kv_head * GROUP + row
    place = ((request * tl.num_programs(0) * GROUP + head) * num_splits + split).to(tl.int64)
    if SPLIT:  # noqa: SIM102 (the compiler's condition, around one of the data)
        # A graph has as many splits as the longest context that can come: most have nothing to do.
        if start >= seq_len:
            tl.store(lse + place, tl.full((ROWS,), float("-inf"), tl.float32), mask=row < GROUP)
            return
    queries = tl.load(
        q + request * stride_q + head[:, None] * stride_q_head + d[None, :], mask=stored, other=0.0
    ).to(DOT)
    table = block_table + tl.load(rows + request).to(tl.int64) * stride_row
    keys = k_cache + kv_head * stride_head
    values = v_cache + kv_head * stride_head

    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, HEAD_DIM_PADDED), tl.float32)
    for first in range(start, end, KEYS):
        positions = first + tl.arange(0, KEYS)
        cached = positions < end
        top, total, acc = attend(
            queries,
            keys,
            values,
            table,
            positions,
            cached,
            cached[None, :],
            stride_block,
            scale,
            top,
            total,
            acc,
            HEAD_DIM,
            HEAD_DIM_PADDED,
            BLOCK_SIZE,
            DOT,
        )

    total = tl.where(total == 0.0, 1.0, total)  # no keys: zeros, not 0 / 0
    tl.store(partial + place[:, None] * HEAD_DIM + d[None, :], acc / total[:, None], mask=stored)
    if SPLIT:
        tl.store(lse + place, top + tl.log2(total), mask=row < GROUP)


@triton.jit(do_not_specialize=["num_splits"])
def _combine(
    partial,
    lse,
    out,
    num_splits,
    HEAD_DIM: tl.constexpr,
    HEAD_DIM_PADDED: tl.constexpr,
    MOST_SPLITS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    nth = tl.arange(0, MOST_SPLITS)
    split = row * num_splits + nth
    d = tl.arange(0, HEAD_DIM_PADDED)
    logs = tl.load(lse + split, mask=nth < num_splits, other=float("-inf"))
    top = tl.max(logs, 0)
    weights = tl.exp2(logs - tl.where(top == float("-inf"), 0.0, top))
    mask = (weights > 0.0)[:, None] & (d < HEAD_DIM)[None, :]
    parts = tl.load(partial + split[:, None] * HEAD_DIM + d[None, :], mask=mask, other=0.0)
    total = tl.sum(weights, 0)
    total = tl.where(total == 0.0, 1.0, total)
    mean = tl.sum(parts * weights[:, None], 0) / total
    tl.store(out + row * HEAD_DIM + d, mean, mask=d < HEAD_DIM)
