"""Norms of heads, rotary positions and the write to the paged cache, in one pass over q, k, v."""
# ruff: noqa: N803
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl
from torch import Tensor

from engines.builtin.model import ForwardBatch, HeadNorms


def rotate_and_cache(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    norms: HeadNorms | None,
    cos_sin: Tensor | None,
    cache: Tensor,
    batch: ForwardBatch,
) -> None:
    """`Ops.rotate_and_cache`: norms and rotation in float32, the result rounded once; slot -1
    stores nothing.

    The last dimension of ``q``, ``k`` and ``v`` is contiguous, and ``cache`` is of their type.
    """
    num_tokens, num_heads, head_dim = q.shape
    num_kv_heads, block_size = cache.shape[2:4]
    _rotate_and_cache[(num_tokens,)](
        q,
        k,
        v,
        k if norms is None else norms.q,
        k if norms is None else norms.k,
        k if cos_sin is None else cos_sin,
        cache[0],
        cache[1],
        batch.positions,
        batch.slot_mapping,
        0.0 if norms is None else norms.eps,
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
        NORM=norms is not None,
        num_warps=4,
    )


@triton.jit
def _rotate(source, mask, i, norm, eps, cos, sin, HALF: tl.constexpr, NORM: tl.constexpr):
    """In place, each row of ``source`` a head; the halves of what is now there."""
    left = tl.load(source, mask=mask)
    right = tl.load(source + HALF, mask=mask)
    x = left.to(tl.float32)
    y = right.to(tl.float32)
    if NORM:
        # What lies beside the mask is anything, and would count in the sum.
        squares = tl.sum(tl.where(mask, x * x + y * y, 0.0), 1)
        scale = tl.rsqrt(squares / (2 * HALF) + eps)[:, None]
        x = x * scale * tl.load(norm + i, mask=i < HALF).to(tl.float32)[None, :]
        y = y * scale * tl.load(norm + HALF + i, mask=i < HALF).to(tl.float32)[None, :]
    left = (x * cos - y * sin).to(left.dtype)
    right = (y * cos + x * sin).to(left.dtype)
    tl.store(source, left, mask=mask)
    tl.store(source + HALF, right, mask=mask)
    return left, right


@triton.jit(do_not_specialize_on_alignment=["positions", "slot_mapping"])
def _rotate_and_cache(
    q,
    k,
    v,
    q_norm,
    k_norm,
    cos_sin,
    k_cache,
    v_cache,
    positions,
    slot_mapping,
    eps,
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
    NORM: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slot_mapping + token)
    i = tl.arange(0, HALF_PADDED)
    head = tl.arange(0, NUM_KV_HEADS_PADDED)
    mask = (head < NUM_KV_HEADS)[:, None] & (i < HALF)[None, :]
    source = k + token * stride_k + head[:, None] * stride_k_head + i[None, :]
    if ROTATE:
        angle = cos_sin + tl.load(positions + token) * (2 * HALF) + i
        cos = tl.load(angle, mask=i < HALF)[None, :]
        sin = tl.load(angle + HALF, mask=i < HALF)[None, :]
        k_left, k_right = _rotate(source, mask, i, k_norm, eps, cos, sin, HALF, NORM)
        q_head = tl.arange(0, NUM_HEADS_PADDED)
        q_mask = (q_head < NUM_HEADS)[:, None] & (i < HALF)[None, :]
        q_source = q + token * stride_q + q_head[:, None] * stride_q_head + i[None, :]
        _rotate(q_source, q_mask, i, q_norm, eps, cos, sin, HALF, NORM)
    else:
        k_left = tl.load(source, mask=mask)
        k_right = tl.load(source + HALF, mask=mask)

    if slot >= 0:
        v_source = v + token * stride_v + head[:, None] * stride_v_head + i[None, :]
        place = slot // BLOCK_SIZE * stride_block + slot % BLOCK_SIZE * (2 * HALF)
        place = place + head[:, None] * stride_head + i[None, :]
        tl.store(k_cache + place, k_left, mask=mask)
        tl.store(k_cache + place + HALF, k_right, mask=mask)
        tl.store(v_cache + place, tl.load(v_source, mask=mask), mask=mask)
        tl.store(v_cache + place + HALF, tl.load(v_source + HALF, mask=mask), mask=mask)
