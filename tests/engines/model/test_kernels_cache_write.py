"""Norms of heads, rotation and cache writes in Triton, under its interpreter."""

import pytest
import torch
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from kernel_oracles import (
    Shape,
    assert_close,
    head_normed,
    ragged_batch,
    random_tensor,
    rotated,
    rotation_table,
)

from engines.builtin.model import HeadNorms

pytestmark = pytest.mark.slow

KERNEL = "cache_write:rotate_and_cache"


@given(
    shape=st.builds(
        Shape,
        num_kv_heads=st.integers(1, 3),
        group=st.integers(1, 5),
        head_dim=st.sampled_from([8, 64, 80]),
        block_size=st.sampled_from([1, 4, 16]),
    ),
    query_lens=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    how=st.sampled_from(["neither", "rotated", "normed and rotated"]),
    dtype=st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
    seed=st.integers(0, 999),
)
@examples(15, [HealthCheck.too_slow])
def test_what_is_rotated_and_where_it_goes(interpreted, shape, query_lens, how, dtype, seed):
    seq_lens = [length + 7 * i for i, length in enumerate(query_lens)]
    batch, owned = ragged_batch(query_lens, seq_lens, shape.block_size, seed, "cpu")
    heads = shape.num_heads + 2 * shape.num_kv_heads
    qkv = random_tensor(
        sum(query_lens), heads, shape.head_dim, seed=seed, dtype=dtype, device="cpu"
    )
    q, k, v = qkv.split([shape.num_heads, shape.num_kv_heads, shape.num_kv_heads], 1)
    cache = torch.full(
        (2, len(owned), shape.num_kv_heads, shape.block_size, shape.head_dim), 7.0, dtype=dtype
    )
    table = norms = None
    expected_q, expected_k, before = q.double(), k.double(), v.clone()
    if how == "normed and rotated":
        weights = random_tensor(2, shape.head_dim, seed=seed + 1, dtype=dtype, device="cpu")
        norms = HeadNorms(*weights, 1e-3)
        expected_q = head_normed(q, norms.q, norms.eps)
        expected_k = head_normed(k, norms.k, norms.eps)
    if how != "neither":
        table = rotation_table(64, shape.head_dim)
        expected_q = rotated(expected_q, table, batch.positions)
        expected_k = rotated(expected_k, table, batch.positions)

    interpreted(KERNEL, q, k, v, norms, table, cache, batch)

    assert_close(q, expected_q)
    assert_close(k, expected_k)
    assert torch.equal(v, before), "values are not rotated"
    slots = cache.transpose(2, 3).flatten(1, 2)
    assert torch.equal(slots[0, batch.slot_mapping], k), "the cache holds the rotated keys"
    assert torch.equal(slots[1, batch.slot_mapping], v)
    untouched = torch.ones(slots.shape[1], dtype=torch.bool)
    untouched[batch.slot_mapping] = False
    assert (slots[:, untouched] == 7.0).all()


@pytest.mark.parametrize("rotate", [False, True])
def test_a_token_without_a_slot_is_written_nowhere(interpreted, rotate):
    batch, owned = ragged_batch([4], [4], 4, 0, "cpu")
    batch = batch._replace(slot_mapping=torch.tensor([-1, int(batch.slot_mapping[1]), -1, -1]))
    q, k, v = random_tensor(3, 4, 2, 16, seed=1, dtype=torch.float32, device="cpu")
    cache = torch.full((2, len(owned), 2, 4, 16), 7.0)
    table = rotation_table(8, 16) if rotate else None
    interpreted(KERNEL, q, k, v, None, table, cache, batch)
    assert (cache != 7.0).any(-1).any(2).sum() == 2, "one key and one value"
