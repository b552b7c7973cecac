"""Rotary positions and the write to the paged cache, in one pass over a step's keys and values."""
# ruff: noqa: N803
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl
from torch import Tensor

from engines.builtin.model import ForwardBatch


def rotate_and_cache(
    q: Tensor, k: Tensor, v: Tensor, cos_sin: Tensor | None, cache: Tensor, batch: ForwardBatch
) -> None:
    """`Ops.rotate_and_cache`: rotation in float32, the result rounded once; slot -1 stores nothing.

    The last dimension of ``q``, ``k`` and ``v`` is contiguous, and ``cache`` is of their type.
    """
    num_tokens, num_heads, head_dim = q.shape
    num_kv_heads, block_size = cache.shape[2:4]
    _rotate_and_cache[(num_tokens,)](
        q,
        k,
        v,
        k if cos_sin is None else cos_sin,
        cache[0],
        cache[1],
        batch.positions,
        batch.slot_mapping,
        q.stride(0),
        q.stride(1),
        k.stride(0),
        k.stride(1),
        v.stride(0),
        v.stride(1),
        cache.stride(1),
        cache.stride(2),
        NUM_HEADS=num_heads,
        NUM_HEADS_PADDED=triton.next_power_of_2(num_heads),
        NUM_KV_HEADS=num_kv_heads,
        NUM_KV_HEADS_PADDED=triton.next_power_of_2(num_kv_heads),
        HALF=head_dim // 2,
        HALF_PADDED=triton.next_power_of_2(head_dim // 2),
        BLOCK_SIZE=block_size,
        ROTATE=cos_sin is not None,
        num_warps=4,
    )


@triton.jit
def _rotated(left, right, cos, sin):
    x = left.to(tl.float32)
    y = right.to(tl.float32)
    return (x * cos - y * sin).to(left.dtype), (y * cos + x * sin).to(left.dtype)


@triton.jit(do_not_specialize_on_alignment=["positions", "slot_mapping"])
def _rotate_and_cache(
    q,
    k,
    v,
    cos_sin,
    k_cache,
    v_cache,
    positions,
    slot_mapping,
    stride_q,
    stride_q_head,
    stride_k,
    stride_k_head,
    stride_v,
    stride_v_head,
    stride_block,
    stride_head,
    NUM_HEADS: tl.constexpr,
    NUM_HEADS_PADDED: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    NUM_KV_HEADS_PADDED: tl.constexpr,
    HALF: tl.constexpr,
    HALF_PADDED: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    ROTATE: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slot_mapping + token)
    i = tl.arange(0, HALF_PADDED)
    head = tl.arange(0, NUM_KV_HEADS_PADDED)
    mask = (head < NUM_KV_HEADS)[:, None] & (i < HALF)[None, :]
    source = k + token * stride_k + head[:, None] * stride_k_head + i[None, :]
    k_left = tl.load(source, mask=mask)
    k_right = tl.load(source + HALF, mask=mask)
    if ROTATE:
        angle = cos_sin + tl.load(positions + token) * (2 * HALF) + i
        cos = tl.load(angle, mask=i < HALF)[None, :]
        sin = tl.load(angle + HALF, mask=i < HALF)[None, :]
        k_left, k_right = _rotated(k_left, k_right, cos, sin)
        tl.store(source, k_left, mask=mask)
        tl.store(source + HALF, k_right, mask=mask)

        q_head = tl.arange(0, NUM_HEADS_PADDED)
        q_mask = (q_head < NUM_HEADS)[:, None] & (i < HALF)[None, :]
        q_source = q + token * stride_q + q_head[:, None] * stride_q_head + i[None, :]
        q_left = tl.load(q_source, mask=q_mask)
        q_right = tl.load(q_source + HALF, mask=q_mask)
        q_left, q_right = _rotated(q_left, q_right, cos, sin)
        tl.store(q_source, q_left, mask=q_mask)
        tl.store(q_source + HALF, q_right, mask=q_mask)

    if slot >= 0:
        v_source = v + token * stride_v + head[:, None] * stride_v_head + i[None, :]
        place = slot // BLOCK_SIZE * stride_block + slot % BLOCK_SIZE * (2 * HALF)
        place = place + head[:, None] * stride_head + i[None, :]
        tl.store(k_cache + place, k_left, mask=mask)
        tl.store(k_cache + place + HALF, k_right, mask=mask)
        tl.store(v_cache + place, tl.load(v_source, mask=mask), mask=mask)
        tl.store(v_cache + place + HALF, tl.load(v_source + HALF, mask=mask), mask=mask)
