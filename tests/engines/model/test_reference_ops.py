"""The plain ops against their formulas in float64, without a cache of blocks."""

from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from engines.builtin.model import ForwardBatch, HeadNorms
from engines.builtin.model.reference import MOST_GATHERED, ReferenceOps

OPS = ReferenceOps()
BLOCK_SIZES = st.sampled_from([1, 3, 4, 16])


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def write_batch(positions: list[int], slots: list[int]) -> ForwardBatch:
    """What `rotate_and_cache` reads of a batch."""
    nothing = torch.empty(0)
    return ForwardBatch(
        torch.tensor(positions), torch.tensor(slots), nothing, nothing, nothing, nothing, 1, 1
    )


def attend_plainly(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """The last ``q.shape[0]`` of a request's tokens, one head and one query after the other."""
    num_queries, num_heads, _ = q.shape
    group = num_heads // k.shape[1]
    out = torch.empty_like(q)
    for query in range(num_queries):
        seen = k.shape[0] - num_queries + query + 1
        for head in range(num_heads):
            scores = k[:seen, head // group] @ q[query, head] * scale
            out[query, head] = scores.softmax(0) @ v[:seen, head // group]
    return out


@given(
    lengths=st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 12)).map(lambda pair: (sum(pair), pair[1]))
        | st.integers(1, 40).map(lambda seq_len: (seq_len, 1)),
        min_size=1,
        max_size=6,
    ),
    heads=st.sampled_from([(1, 1), (4, 4), (4, 2), (6, 2), (8, 1)]),
    head_dim=st.sampled_from([8, 16, 20]),
    block_size=BLOCK_SIZES,
    longest=st.sampled_from([0, 0, *(MOST_GATHERED * 2 // share for share in (1, 2, 4, 8))]),
    seed=st.integers(0, 1000),
)
def test_attention(*, lengths, heads, head_dim, block_size, longest, seed):
    """``lengths``: tokens cached and, the last of them, queries.

    ``longest``: tokens cached of one more decode step; the more, the fewer are gathered at once.
    """
    random, (num_heads, num_kv_heads) = Random(seed), heads
    if longest:
        lengths = [*lengths, (longest, 1)]
        random.shuffle(lengths)
    needed = [-(-seq_len // block_size) for seq_len, _ in lengths]
    free = random.sample(range(sum(needed) + 3), sum(needed))
    cache = torch.full(
        (2, sum(needed) + 3, num_kv_heads, block_size, head_dim), torch.nan, dtype=torch.float32
    )
    rows = random.sample(range(len(lengths) + 2), len(lengths))
    # Past a request's blocks stands what no cache has.
    table = torch.full((len(lengths) + 2, max(needed) + 1), 10_000, dtype=torch.int32)
    queries, expected, query_start = [], [], [0]
    for i, (seq_len, num_queries) in enumerate(lengths):
        blocks = [free.pop() for _ in range(needed[i])]
        table[rows[i], : len(blocks)] = torch.tensor(blocks)
        k = normal(seq_len, num_kv_heads, head_dim, seed=seed + 100 + i)
        v = normal(seq_len, num_kv_heads, head_dim, seed=seed + 200 + i)
        at = torch.arange(seq_len)
        cache[0, torch.tensor(blocks)[at // block_size], :, at % block_size] = k
        cache[1, torch.tensor(blocks)[at // block_size], :, at % block_size] = v
        queries.append(normal(num_queries, num_heads, head_dim, seed=seed + 300 + i))
        expected.append(attend_plainly(queries[-1].double(), k.double(), v.double(), 0.3))
        query_start.append(query_start[-1] + num_queries)
    batch = ForwardBatch(
        torch.empty(0),
        torch.empty(0),
        torch.tensor(rows, dtype=torch.int32),
        torch.tensor([seq_len for seq_len, _ in lengths], dtype=torch.int32),
        torch.tensor(query_start, dtype=torch.int32),
        table,
        max(num_queries for _, num_queries in lengths),
        max(seq_len for seq_len, _ in lengths),
    )
    got = OPS.attention(torch.cat(queries), cache, batch, 0.3)
    torch.testing.assert_close(got.double(), torch.cat(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seq_lens", [[0, 2, 0], [0, 0, 0]])
def test_attention_over_nothing_is_zero(seq_lens):
    """Requests without a token in the cache, of one query and of two; a token that is nobody's."""
    batch = ForwardBatch(
        torch.empty(0),
        torch.empty(0),
        torch.tensor([0, 1, 2], dtype=torch.int32),
        torch.tensor(seq_lens, dtype=torch.int32),
        torch.tensor([0, 1, 2, 4], dtype=torch.int32),
        torch.zeros(3, 1, dtype=torch.int32),
        2,
        2,
    )
    out = OPS.attention(normal(5, 2, 8), normal(2, 3, 1, 4, 8), batch, 1.0)
    assert out[[0, 2, 3, 4]].count_nonzero() == 0
    assert bool(out[1].any()) is (seq_lens[1] > 0)


def rms_normed(x: Tensor, weight: Tensor) -> Tensor:
    """With an epsilon of 0.1."""
    return x / (x.square().mean(-1, keepdim=True) + 0.1).sqrt() * weight


def rotated(x: Tensor, positions: list[int], frequencies: Tensor) -> Tensor:
    """Each pair (i, i + half) as a complex number, turned."""
    half = x.shape[-1] // 2
    angles = torch.tensor(positions)[:, None, None] * frequencies
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.exp(1j * angles)
    return torch.cat((turned.real, turned.imag), -1)


@pytest.mark.parametrize(("rotates", "norms"), [(False, False), (True, False), (True, True)])
@given(block_size=BLOCK_SIZES, seed=st.integers(0, 1000))
def test_rotate_and_cache(rotates, norms, block_size, seed):
    random, num_blocks, head_dim = Random(seed), 5, 8
    slots = random.sample(range(num_blocks * block_size), 4)
    slots[random.randrange(4)] = -1
    positions = [random.randrange(30) for _ in slots]
    frequencies = 10.0 ** -torch.arange(head_dim // 2)
    angles = torch.outer(torch.arange(30.0), frequencies)
    cos_sin = torch.stack((angles.cos(), angles.sin()), 1) if rotates else None
    qkv = normal(4, 5 + 2 + 2, head_dim, seed=seed)
    expected_q, expected_k, expected_v = (x.double() for x in qkv.split((5, 2, 2), 1))
    head_norms = (
        HeadNorms(normal(head_dim, seed=1), normal(head_dim, seed=2), 0.1) if norms else None
    )
    if head_norms is not None:
        expected_q = rms_normed(expected_q, head_norms.q)
        expected_k = rms_normed(expected_k, head_norms.k)
    if rotates:
        expected_q = rotated(expected_q, positions, frequencies.double())
        expected_k = rotated(expected_k, positions, frequencies.double())
    cache = torch.full((2, num_blocks, 2, block_size, head_dim), 7.0)
    expected_cache = cache.double()
    for token, slot in enumerate(slots):
        if slot >= 0:
            block, offset = divmod(slot, block_size)
            expected_cache[0, block, :, offset] = expected_k[token]
            expected_cache[1, block, :, offset] = expected_v[token]
    q, k, v = qkv.split((5, 2, 2), 1)
    OPS.rotate_and_cache(q, k, v, head_norms, cos_sin, cache, write_batch(positions, slots))
    for got, wanted in ((q, expected_q), (k, expected_k), (v, expected_v), (cache, expected_cache)):
        torch.testing.assert_close(got.double(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("has_residual", [True, False])
def test_norms(has_residual):
    x, residual = normal(5, 12, seed=1) * 3 + 1, normal(5, 12, seed=2)
    weight, bias = normal(12, seed=3), normal(12, seed=4)
    before, added = x.clone(), residual if has_residual else None
    total = (x + residual if has_residual else x).double()
    spread = total - total.mean(1, keepdim=True)
    layer = spread / (spread.square().mean(1, keepdim=True) + 0.1).sqrt() * weight + bias
    rms = rms_normed(total, weight)
    for (normed, got_total), expected in (
        (OPS.add_layer_norm(x, added, weight, bias, 0.1), layer),
        (OPS.add_rms_norm(x, added, weight, 0.1), rms),
    ):
        torch.testing.assert_close(normed.double(), expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(got_total.double(), total, rtol=1e-6, atol=1e-6)
        assert torch.equal(x, before)


def test_norms_of_half_precision_are_computed_in_float32():
    """A sum of squares beyond 2^16 in bfloat16 keeps its last digits only in float32."""
    x = (normal(3, 512, seed=5) * 300).bfloat16()
    weight, bias = torch.ones(512).bfloat16(), torch.zeros(512).bfloat16()
    wide = x.double()
    rms = wide / wide.square().mean(1, keepdim=True).sqrt()
    normed, _ = OPS.add_rms_norm(x, None, weight, 1e-5)
    assert normed.dtype == torch.bfloat16
    torch.testing.assert_close(normed.double(), rms, rtol=2**-8, atol=0)
    spread = wide - wide.mean(1, keepdim=True)
    layer = spread / spread.square().mean(1, keepdim=True).sqrt()
    normed, _ = OPS.add_layer_norm(x, None, weight, bias, 1e-5)
    assert normed.dtype == torch.bfloat16
    torch.testing.assert_close(normed.double(), layer, rtol=2**-7, atol=1e-3)


def test_silu_and_mul():
    gate, up = normal(4, 6, seed=6), normal(4, 6, seed=7)
    expected = gate.double() / (1 + (-gate.double()).exp()) * up
    got = OPS.silu_and_mul(torch.cat((gate, up), 1))
    torch.testing.assert_close(got.double(), expected, rtol=1e-5, atol=1e-6)
