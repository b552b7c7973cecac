"""Causal attention of any number of queries a request over a paged cache; mixed batches too."""
# ruff: noqa: N803
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from engines.builtin.model import ForwardBatch
from engines.builtin.model.kernels.attend import attend, dot_type
from engines.builtin.model.kernels.tiles import PrefillTile, padded_head_dim, prefill_tile


def paged_prefill(
    q: Tensor, cache: Tensor, batch: ForwardBatch, scale: float, tile: PrefillTile | None = None
) -> Tensor:
    """`Ops.attention` for any batch.

    ``q`` float16, bfloat16 or float32 ``[T, num_heads, head_dim]``, its last dimension contiguous.
    Query ``i`` of a request stands at ``seq_len - query_len + i`` and sees all up to there. Rows
    of tokens beyond ``query_start[-1]`` are left as they were allocated.
    """
    num_tokens, num_heads, head_dim = q.shape
    num_kv_heads, block_size = cache.shape[2:4]
    num_reqs = batch.seq_lens.shape[0]
    group = num_heads // num_kv_heads
    num_rows, num_keys, num_warps, num_stages = tile or prefill_tile(
        num_tokens / max(num_reqs, 1), group, head_dim, q.element_size()
    )
    num_queries = num_rows // group
    out = torch.empty((num_tokens, num_heads, head_dim), dtype=q.dtype, device=q.device)
    # A request of n queries has at most n // num_queries + 1 tiles: no need to know the lengths.
    _prefill[(num_tokens // num_queries + num_reqs, num_kv_heads)](
        q,
        cache[0],
        cache[1],
        out,
        batch.rows,
        batch.seq_lens,
        batch.query_start,
        batch.block_table,
        num_reqs,
        scale * math.log2(math.e),
        q.stride(0),
        q.stride(1),
        cache.stride(1),
        cache.stride(2),
        batch.block_table.stride(0),
        GROUP=group,
        QUERIES=num_queries,
        ROWS=num_rows,
        HEAD_DIM=head_dim,
        HEAD_DIM_PADDED=padded_head_dim(head_dim),
        BLOCK_SIZE=block_size,
        KEYS=num_keys,
        DOT=dot_type(q.dtype),
        num_warps=num_warps,
        num_stages=num_stages,
    )
    return out


@triton.jit
def _request_of(tile, query_start, num_reqs, QUERIES: tl.constexpr):
    """The last request whose first tile is at or before ``tile``, by binary search.

    Request ``r`` is given the tiles from ``query_start[r] // QUERIES + r`` on, which is one more
    than it needs where its queries end with a tile.
    """
    low = 0
    high = num_reqs
    while low < high:
        middle = (low + high) // 2
        begun = tl.load(query_start + middle) // QUERIES + middle <= tile
        low = tl.where(begun, middle + 1, low)
        high = tl.where(begun, high, middle)
    return low - 1


@triton.jit(
    do_not_specialize=["num_reqs"],
    do_not_specialize_on_alignment=["rows", "seq_lens", "query_start", "block_table"],
)
def _prefill(
    q,
    k_cache,
    v_cache,
    out,
    rows,
    seq_lens,
    query_start,
    block_table,
    num_reqs,
    scale,
    stride_q,
    stride_q_head,
    stride_block,
    stride_head,
    stride_row,
    GROUP: tl.constexpr,
    QUERIES: tl.constexpr,
    ROWS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_DIM_PADDED: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    KEYS: tl.constexpr,
    DOT: tl.constexpr,
):
    tile = tl.program_id(0)
    kv_head = tl.program_id(1)
    request = _request_of(tile, query_start, num_reqs, QUERIES)
    first_token = tl.load(query_start + request)
    query_len = tl.load(query_start + request + 1) - first_token
    first_query = (tile - first_token // QUERIES - request) * QUERIES
    if first_query >= query_len:
        return
    seq_len = tl.load(seq_lens + request)
    before = seq_len - query_len
    end = tl.minimum(seq_len, before + first_query + QUERIES)

    row = tl.arange(0, ROWS)
    d = tl.arange(0, HEAD_DIM_PADDED)
    query = first_query + row // GROUP
    head = kv_head * GROUP + row % GROUP
    real = (row < QUERIES * GROUP) & (query < query_len)
    stored = real[:, None] & (d < HEAD_DIM)[None, :]
    token = (first_token + query).to(tl.int64)
    source = q + token * stride_q + head * stride_q_head
    queries = tl.load(source[:, None] + d[None, :], mask=stored, other=0.0).to(DOT)
    table = block_table + tl.load(rows + request).to(tl.int64) * stride_row
    keys = k_cache + kv_head * stride_head
    values = v_cache + kv_head * stride_head

    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, HEAD_DIM_PADDED), tl.float32)
    for first in range(0, end, KEYS):
        positions = first + tl.arange(0, KEYS)
        cached = positions < end
        visible = cached[None, :] & (positions[None, :] <= (before + query)[:, None])
        top, total, acc = attend(
            queries,
            keys,
            values,
            table,
            positions,
            cached,
            visible,
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
    place = (token * tl.num_programs(1) * GROUP + head) * HEAD_DIM
    tl.store(out + place[:, None] + d[None, :], acc / total[:, None], mask=stored)
