"""The ops in plain torch: what the CPU runs, and what kernels are compared with."""

import torch
from torch import Tensor
from torch.nn import functional as F

from engines.builtin.model import DecodeTokens, ForwardBatch, HeadNorms

MOST_GATHERED = 1 << 12
"""Tokens whose keys and values are copied out of the cache at once. With more, the copies are so
large that the allocator takes them fresh from the system, a page fault every 4 KiB."""


class ReferenceOps:
    """`Ops` for float32 and bfloat16; attention reads lengths on the host."""

    def add_layer_norm(
        self, x: Tensor, residual: Tensor | None, weight: Tensor, bias: Tensor, eps: float
    ) -> tuple[Tensor, Tensor]:
        """The layer norm of ``x + residual`` ``[T, hidden]``, and that sum."""
        total = x if residual is None else x + residual
        return F.layer_norm(total, weight.shape, weight, bias, eps), total

    def add_rms_norm(
        self, x: Tensor, residual: Tensor | None, weight: Tensor, eps: float
    ) -> tuple[Tensor, Tensor]:
        """The same with the root-mean-square norm, computed in float32."""
        total = x if residual is None else x + residual
        return _rms_norm(total.float(), weight, eps).to(x.dtype), total

    def silu_and_mul(self, gate_up: Tensor) -> Tensor:
        """``silu(gate) * up`` of ``[T, 2 * intermediate]``, the gate first."""
        gate, up = gate_up.chunk(2, -1)
        return F.silu(gate) * up

    def rotate_and_cache(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        norms: HeadNorms | None,
        cos_sin: Tensor | None,
        cache: Tensor,
        batch: ForwardBatch,
    ) -> None:
        """Norm and rotate ``q`` and ``k`` in place, write ``k`` and ``v`` where they belong."""
        if cos_sin is not None:
            cos, sin = cos_sin[batch.positions].unsqueeze(2).unbind(1)
            wide_q, wide_k = q.float(), k.float()
            if norms is not None:
                wide_q = _rms_norm(wide_q, norms.q, norms.eps)
                wide_k = _rms_norm(wide_k, norms.k, norms.eps)
            for x, wide in ((q, wide_q), (k, wide_k)):
                first, second = wide.chunk(2, -1)
                turned = (first * cos - second * sin, second * cos + first * sin)
                x.copy_(torch.cat(turned, -1))
        somewhere = batch.slot_mapping >= 0
        slots, block_size = batch.slot_mapping[somewhere], cache.shape[3]
        blocks, offsets = slots // block_size, slots % block_size
        cache[0][blocks, :, offsets] = k[somewhere]
        cache[1][blocks, :, offsets] = v[somewhere]

    def decode_tokens(
        self,
        rows: Tensor,
        progress: Tensor,
        last_tokens: Tensor,
        block_table: Tensor,
        *,
        width: int,
        block_size: int,
    ) -> DecodeTokens:
        """What rows compute that decode ``width`` tokens each."""
        computed, outputs, requests = progress[:, rows]
        nth = torch.arange(width, device=rows.device)
        positions = computed[:, None] + nth
        blocks = block_table[rows[:, None], positions // block_size].long()
        return DecodeTokens(
            positions.flatten(),
            (blocks * block_size + positions % block_size).flatten(),
            last_tokens[rows].repeat_interleave(width),
            requests.repeat_interleave(width),
            (outputs[:, None] + nth).flatten(),
            rows.int(),
            (computed + width).int(),
        )

    def to_host(self, tokens: Tensor, ring: Tensor, turn: Tensor) -> None:
        """Store ``tokens`` where it is their turn."""
        ring[int(turn) % len(ring), : len(tokens)] = tokens

    def attention(self, q: Tensor, cache: Tensor, batch: ForwardBatch, scale: float) -> Tensor:
        """Causal attention ``[T, num_heads, head_dim]``; zeros where a request has nothing cached.

        Requests of one query are computed together, longer ones each by itself.
        """
        out = q.new_zeros(q.shape)
        starts, seq_lens = batch.query_start.tolist(), batch.seq_lens.tolist()
        decodes = []
        for i, seq_len in enumerate(seq_lens):
            num_queries = starts[i + 1] - starts[i]
            if not seq_len or not num_queries:
                continue
            if num_queries == 1:
                decodes.append(i)
            else:
                own = slice(starts[i], starts[i + 1])
                out[own] = _attend(q[None, own], cache, batch, [i], longest=seq_len, scale=scale)[0]
        longest = max((seq_lens[i] for i in decodes), default=1)
        at_once = max(1, MOST_GATHERED // longest)
        for begin in range(0, len(decodes), at_once):
            some = decodes[begin : begin + at_once]
            tokens = batch.query_start[some].long()
            alone = q[tokens][:, None]
            attended = _attend(alone, cache, batch, some, longest=longest, scale=scale)
            out[tokens] = attended[:, 0]
        return out


def _rms_norm(wide: Tensor, weight: Tensor, eps: float) -> Tensor:
    return wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * weight


def _attend(
    q: Tensor,
    cache: Tensor,
    batch: ForwardBatch,
    requests: list[int],
    *,
    longest: int,
    scale: float,
) -> Tensor:
    """``[R, Q, num_heads, head_dim]`` for the last Q tokens of R requests."""
    num_requests, num_queries, num_heads, head_dim = q.shape
    _, _, num_kv_heads, block_size, _ = cache.shape
    group = num_heads // num_kv_heads
    seq_lens = batch.seq_lens[requests][:, None]
    num_blocks = -(-longest // block_size)
    blocks = batch.block_table[batch.rows[requests], :num_blocks].long()
    starts = torch.arange(num_blocks, device=q.device) * block_size
    blocks = blocks.where(starts < seq_lens, 0)  # past a request's end stands anything
    places = (blocks[:, None] * num_kv_heads) + torch.arange(num_kv_heads, device=q.device)[:, None]

    at = torch.arange(num_blocks * block_size, device=q.device)
    past_end = (at >= seq_lens).nonzero().unbind(1)

    def gather(cached: Tensor) -> Tensor:
        """``[R, num_kv_heads, length, head_dim]``."""
        rows = cached.view(-1, block_size, head_dim).index_select(0, places.flatten())
        gathered = rows.view(num_requests, num_kv_heads, -1, head_dim)
        # No mask hides a NaN: a weight of 0 times NaN is NaN, and blocks have been others' before.
        gathered[past_end[0], :, past_end[1]] = 0
        return gathered

    last_seen = seq_lens - num_queries + torch.arange(num_queries, device=q.device)
    mask = (at <= last_seen[:, :, None])[:, None, None].expand(-1, -1, group, -1, -1)
    # The query heads of one key head stand one after the other, as if they were its queries.
    grouped = q.reshape(num_requests, num_queries, num_kv_heads, group, head_dim)
    attended = F.scaled_dot_product_attention(
        grouped.permute(0, 2, 3, 1, 4).flatten(2, 3),
        gather(cache[0]),
        gather(cache[1]),
        attn_mask=mask.flatten(2, 3),
        scale=scale,
    )
    ungrouped = attended.view(num_requests, num_kv_heads, group, num_queries, head_dim)
    return ungrouped.permute(0, 3, 1, 2, 4).reshape(q.shape)
