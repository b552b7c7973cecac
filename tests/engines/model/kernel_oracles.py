"""Batches over a shuffled cache, poisoned where nobody may read, and what is to come of them.

All on any device; the oracles compute in float64.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from engines.builtin.model import ForwardBatch

# Of the result's type: its rounding (the interpreter truncates to bfloat16), and in the kernels'
# products that of the softmax's weights.
TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}


class Shape(NamedTuple):
    """A model's attention and its cache."""

    num_kv_heads: int
    group: int
    head_dim: int
    block_size: int

    @property
    def num_heads(self) -> int:
        return self.num_kv_heads * self.group


class Case(NamedTuple):
    """Arguments of `Ops.attention`."""

    q: Tensor
    cache: Tensor
    batch: ForwardBatch
    scale: float


def random_tensor(*size: int, seed: int, dtype: torch.dtype, device: str) -> Tensor:
    """Normal numbers."""
    generator = torch.Generator(device).manual_seed(seed)
    return torch.randn(*size, generator=generator, device=device).to(dtype)


def ragged_batch(
    query_lens: list[int], seq_lens: list[int], block_size: int, seed: int, device: str
) -> tuple[ForwardBatch, Tensor]:
    """Requests in shuffled rows of a table with shuffled blocks, and bool ``[num_blocks,
    block_size]``: what they own. Block 0 is nobody's, and table entries without a block say 0.
    """
    generator = torch.Generator().manual_seed(seed)
    num_reqs = len(seq_lens)
    num_blocks = [-(-length // block_size) for length in seq_lens]
    blocks = 1 + torch.randperm(sum(num_blocks) + 2, generator=generator)
    rows = torch.randperm(num_reqs + 2, generator=generator)[:num_reqs]
    table = torch.zeros(num_reqs + 2, max(num_blocks, default=0) + 1, dtype=torch.int64)
    owned = torch.zeros(len(blocks) + 1, block_size, dtype=torch.bool)
    positions, slots = [], []
    for row, count, length, queries in zip(rows, num_blocks, seq_lens, query_lens, strict=True):
        mine, blocks = blocks[:count], blocks[count:]
        table[row, :count] = mine
        place = torch.arange(length)
        slot = mine[place // block_size] * block_size + place % block_size
        owned.view(-1)[slot] = True
        positions.append(place[length - queries :])
        slots.append(slot[length - queries :])
    start = torch.tensor([0, *query_lens]).cumsum(0)
    batch = ForwardBatch(
        positions=torch.cat(positions).to(device),
        slot_mapping=torch.cat(slots).to(device),
        rows=rows.int().to(device),
        seq_lens=torch.tensor(seq_lens, dtype=torch.int32, device=device),
        query_start=start.int().to(device),
        block_table=table.int().to(device),
        max_query_len=max(query_lens, default=0),
        max_seq_len=max(seq_lens, default=0),
    )
    return batch, owned.to(device)


def attention_case(
    shape: Shape,
    query_lens: list[int],
    seq_lens: list[int],
    *,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    device: str = "cpu",
) -> Case:
    """Random queries over a cache that is NaN wherever no request's key or value is."""
    batch, owned = ragged_batch(query_lens, seq_lens, shape.block_size, seed, device)
    size = (2, len(owned), shape.num_kv_heads, shape.block_size, shape.head_dim)
    cache = random_tensor(*size, seed=seed, dtype=dtype, device=device)
    cache.masked_fill_(~owned[None, :, None, :, None], float("nan"))
    # As a model has it: queries are a slice of the product that holds keys and values too.
    heads = shape.num_heads + 2 * shape.num_kv_heads
    qkv = random_tensor(
        sum(query_lens), heads, shape.head_dim, seed=seed + 1, dtype=dtype, device=device
    )
    return Case(qkv[:, : shape.num_heads], cache, batch, shape.head_dim**-0.5)


def attention_oracle(q: Tensor, cache: Tensor, batch: ForwardBatch, scale: float) -> Tensor:
    """Request by request, float64 ``[T, num_heads, head_dim]``."""
    num_kv_heads, block_size, head_dim = cache.shape[2:]
    out = torch.zeros(q.shape, dtype=torch.float64, device=q.device)
    starts = batch.query_start.tolist()
    for request, (row, seq_len) in enumerate(
        zip(batch.rows.tolist(), batch.seq_lens.tolist(), strict=True)
    ):
        first, last = starts[request], starts[request + 1]
        if first == last or seq_len == 0:
            continue
        blocks = batch.block_table[row, : -(-seq_len // block_size)].long()
        pages = cache[:, blocks].transpose(2, 3).reshape(2, -1, num_kv_heads, head_dim)
        k, v = pages[:, :seq_len].double()
        grouped = q[first:last].double().reshape(last - first, num_kv_heads, -1, head_dim)
        scores = torch.einsum("qhgd,khd->hgqk", grouped, k) * scale
        key = torch.arange(seq_len, device=q.device)
        hidden = key > key[seq_len - (last - first) :, None]
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        out[first:last] = torch.einsum("hgqk,khd->qhgd", weights, v).reshape(out[first:last].shape)
    return out


def assert_close(result: Tensor, expected: Tensor) -> None:
    """To what the result's type allows; NaN equals nothing."""
    tolerance = TOLERANCE[result.dtype]
    torch.testing.assert_close(result.double(), expected, rtol=tolerance, atol=tolerance)


def rotation_table(num_positions: int, head_dim: int, device: str = "cpu") -> Tensor:
    """Cosines and sines of RoPE (Su et al. 2021), float32 ``[num_positions, 2, head_dim / 2]``."""
    exponent = torch.arange(0, head_dim, 2, dtype=torch.float64, device=device) / head_dim
    place = torch.arange(num_positions, dtype=torch.float64, device=device)
    angle = place[:, None] * 10000.0**-exponent
    return torch.stack([angle.cos(), angle.sin()], 1).float()


def head_normed(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Each head by itself; float64."""
    return F.rms_norm(x.double(), (x.shape[-1],), weight.double(), eps)


def rotated(x: Tensor, cos_sin: Tensor, positions: Tensor) -> Tensor:
    """Pairs as complex numbers, turned; float64."""
    left, right = x.double().chunk(2, -1)
    cos, sin = cos_sin[positions].double().unbind(1)
    turned = torch.complex(left, right) * torch.complex(cos, sin)[:, None]
    return torch.cat([turned.real, turned.imag], -1)
