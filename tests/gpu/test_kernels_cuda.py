"""The kernels as compiled, at the sizes they are for, against float64 on the same GPU."""

import pytest
import torch
from kernel_oracles import (
    Shape,
    assert_close,
    attention_case,
    attention_oracle,
    head_normed,
    ragged_batch,
    random_tensor,
    rotated,
    rotation_table,
)
from torch.nn import functional as F

from engines.builtin.model import ForwardBatch, HeadNorms
from engines.builtin.model.gumbel_reference import gumbel_noise, row_keys, sample_reference

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
]

OPT_125M = Shape(num_kv_heads=12, group=1, head_dim=64, block_size=16)
LLAMA_3_8B = Shape(num_kv_heads=8, group=4, head_dim=128, block_size=16)
ODD = Shape(num_kv_heads=3, group=3, head_dim=80, block_size=1)
shapes = pytest.mark.parametrize(
    "shape", [OPT_125M, LLAMA_3_8B, ODD], ids=["opt-125m", "llama-3-8b", "odd"]
)
dtypes = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])


@pytest.fixture
def ops():
    pytest.importorskip("triton")
    from engines.builtin.model.kernels import TritonOps

    return TritonOps()


def lengths(count: int, low: int, high: int, seed: int = 0) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(low, high + 1, (count,), generator=generator).tolist()


def case_on_gpu(shape, query_lens, seq_lens, dtype=torch.bfloat16, seed=0):
    return attention_case(shape, query_lens, seq_lens, dtype=dtype, seed=seed, device="cuda")


@shapes
@dtypes
@pytest.mark.parametrize("longest", [1, 17, 300])
def test_decoding_of_any_type(ops, shape, dtype, longest):
    case = case_on_gpu(shape, [1] * 64, lengths(64, 1, longest), dtype)
    assert_close(ops.attention(*case), attention_oracle(*case))


@shapes
@pytest.mark.parametrize("num_reqs", [64, 256, 1024])
def test_decoding_of_large_batches(ops, shape, num_reqs):
    case = case_on_gpu(shape, [1] * num_reqs, lengths(num_reqs, 1, 2000))
    assert_close(ops.attention(*case), attention_oracle(*case))


@shapes
@pytest.mark.parametrize("num_splits", [1, 2, 8, 64])
def test_decoding_in_any_number_of_splits(ops, shape, num_splits):
    from engines.builtin.model.kernels.paged_decode import paged_decode

    case = case_on_gpu(shape, [1] * 7, [2000, 1, 127, 128, 129, 700, 3])
    case.batch.seq_lens[6] = 0
    assert_close(paged_decode(*case, num_splits), attention_oracle(*case))


@shapes
@dtypes
def test_prefill_in_chunks_beside_requests_that_decode(ops, shape, dtype):
    query_lens = [512, *lengths(40, 1, 64), *[1] * 200]
    before = lengths(len(query_lens), 0, 900)
    seq_lens = [sum(pair) for pair in zip(query_lens, before, strict=True)]
    case = case_on_gpu(shape, query_lens, seq_lens, dtype)
    assert_close(ops.attention(*case), attention_oracle(*case))


@shapes
@pytest.mark.parametrize("num_reqs", [1, 64, 256])
def test_prefill_of_whole_prompts(ops, shape, num_reqs):
    prompts = lengths(num_reqs, 48, 256)
    case = case_on_gpu(shape, prompts, prompts)
    assert_close(ops.attention(*case), attention_oracle(*case))


def test_a_cache_of_more_than_two_to_the_31_elements(ops):
    shape = OPT_125M
    size = (shape.num_kv_heads, shape.block_size, shape.head_dim)
    block_elements = shape.num_kv_heads * shape.block_size * shape.head_dim
    num_blocks = 2**31 // block_elements + 100
    if torch.cuda.mem_get_info()[0] < 2 * 2 * num_blocks * block_elements + 2**30:
        pytest.skip("less than 10 GB of GPU memory are free")
    small = case_on_gpu(shape, [1] * 8, [100] * 8)
    cache = torch.empty((2, num_blocks, *size), dtype=torch.bfloat16, device="cuda")
    shift = num_blocks - small.cache.shape[1]
    cache[:, shift:] = small.cache
    batch = small.batch._replace(
        block_table=small.batch.block_table + shift,
        slot_mapping=small.batch.slot_mapping + shift * shape.block_size,
    )
    k, v = random_tensor(2, 8, 12, 64, seed=3, dtype=torch.bfloat16, device="cuda")
    ops.rotate_and_cache(small.q, k, v, None, None, cache, batch)
    assert torch.equal(cache[0, batch.slot_mapping // 16, :, batch.slot_mapping % 16], k)
    assert_close(
        ops.attention(small.q, cache, batch, small.scale),
        attention_oracle(small.q, cache, batch, small.scale),
    )


@shapes
def test_a_captured_graph_follows_its_batch(ops, shape):
    """Writing and reading the cache, captured once for 32 requests and replayed for others."""
    first, second = (
        case_on_gpu(shape, [1] * 32, lengths(32, 1, longest, seed=seed), seed=seed)
        for seed, longest in ((1, 50), (2, 700))
    )
    width = max(case.batch.block_table.shape[1] for case in (first, second))
    blocks = max(case.cache.shape[1] for case in (first, second))
    table = torch.zeros(first.batch.block_table.shape[0], width, dtype=torch.int32, device="cuda")
    cache = torch.empty((2, blocks, *first.cache.shape[2:]), dtype=torch.bfloat16, device="cuda")
    batch = ForwardBatch(
        *(x.clone() for x in first.batch[:5]), table, max_query_len=1, max_seq_len=700
    )
    q = first.q.contiguous()
    new = random_tensor(2, 32, *first.q.shape[1:], seed=4, dtype=torch.bfloat16, device="cuda")
    k, v = new[:, :, : shape.num_kv_heads].contiguous()
    rotation = rotation_table(1000, shape.head_dim, "cuda")
    fresh_k = k.clone()

    def load(case):
        q.copy_(case.q)
        k.copy_(fresh_k)
        cache[:, : case.cache.shape[1]] = case.cache
        table[:, : case.batch.block_table.shape[1]] = case.batch.block_table
        for mine, theirs in zip(batch[:5], case.batch[:5], strict=True):
            mine.copy_(theirs)

    def step():
        ops.rotate_and_cache(q, k, v, None, rotation, cache, batch)
        return ops.attention(q, cache, batch, first.scale)

    load(first)
    step()  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = step()
    for case in (second, first):
        load(case)
        graph.replay()
        assert_close(out, attention_oracle(q, cache, batch, first.scale))
        assert_close(q, rotated(case.q, rotation, batch.positions))
        eager = out.clone()
        load(case)
        assert torch.equal(step(), eager), "eager and replayed are one arithmetic"


@shapes
@dtypes
@pytest.mark.parametrize("how", ["neither", "rotated", "normed and rotated"])
def test_norms_of_heads_rotation_and_cache_writes(ops, shape, dtype, how):
    query_lens = lengths(300, 1, 9)
    batch, owned = ragged_batch(query_lens, query_lens, shape.block_size, 1, "cuda")
    batch.slot_mapping[::7] = -1
    num_tokens = sum(query_lens)
    heads = shape.num_heads + 2 * shape.num_kv_heads
    qkv = random_tensor(num_tokens, heads, shape.head_dim, seed=2, dtype=dtype, device="cuda")
    q, k, v = qkv.split([shape.num_heads, shape.num_kv_heads, shape.num_kv_heads], 1)
    size = (2, len(owned), shape.num_kv_heads, shape.block_size, shape.head_dim)
    cache = torch.full(size, 7.0, dtype=dtype, device="cuda")
    table = norms = None
    expected = [q.double(), k.double()]
    if how == "normed and rotated":
        weights = random_tensor(2, shape.head_dim, seed=3, dtype=dtype, device="cuda")
        norms = HeadNorms(*weights, 1e-6)
        expected = [head_normed(x, w, norms.eps) for x, w in zip((q, k), weights, strict=True)]
    if how != "neither":
        table = rotation_table(16, shape.head_dim, "cuda")
        expected = [rotated(x, table, batch.positions) for x in expected]
    ops.rotate_and_cache(q, k, v, norms, table, cache, batch)
    assert_close(q, expected[0])
    assert_close(k, expected[1])
    slots = cache.transpose(2, 3).flatten(1, 2)
    written = batch.slot_mapping[batch.slot_mapping >= 0]
    assert torch.equal(slots[0, written], k[batch.slot_mapping >= 0])
    assert torch.equal(slots[1, written], v[batch.slot_mapping >= 0])
    untouched = torch.ones(slots.shape[1], dtype=torch.bool, device="cuda")
    untouched[written] = False
    assert (slots[:, untouched] == 7.0).all()


@dtypes
@pytest.mark.parametrize("hidden_size", [768, 2048, 4096, 5120])
def test_norms_and_activation(ops, dtype, hidden_size):
    def tensor(*size, seed):
        return random_tensor(*size, seed=seed, dtype=dtype, device="cuda")

    x, residual = tensor(2, 1024, hidden_size, seed=1)
    weight, bias = tensor(2, hidden_size, seed=2)
    for add in (None, residual):
        before = x.clone()
        normed, summed = ops.add_layer_norm(x, add, weight, bias, 1e-5)
        exact = summed.double(), (hidden_size,), weight.double()
        assert_close(normed, F.layer_norm(*exact, bias.double(), 1e-5))
        normed, summed = ops.add_rms_norm(x, add, weight, 1e-5)
        assert_close(summed, x.double() if add is None else x.double() + add.double())
        assert_close(normed, F.rms_norm(*exact, 1e-5))
        assert torch.equal(x, before)
    gate, up = x.double().chunk(2, 1)
    assert_close(ops.silu_and_mul(x), F.silu(gate) * up)


@dtypes
@pytest.mark.parametrize("vocab_size", [50272, 128256])
def test_sampling(ops, dtype, vocab_size):
    from engines.builtin.model.kernels.gumbel import sample

    logits = 3 * random_tensor(256, vocab_size, seed=1, dtype=torch.float32, device="cuda")
    logits = logits.to(dtype)
    request = torch.arange(256, device="cuda")
    position = request * 3 + 1
    greedy = sample(logits, 0.0, 1, request, position)
    assert greedy.tolist() == sample_reference(logits, 0.0, 1, request, position).tolist()
    tokens = sample(logits, 0.7, 1, request, position).long()
    # Logarithms may differ in the last bit: the token drawn is as good as the best, if another.
    values = logits.float() * (1 / 0.7) + gumbel_noise(row_keys(1, request, position), vocab_size)
    chosen = values.gather(1, tokens[:, None])[:, 0]
    torch.testing.assert_close(chosen, values.amax(1), rtol=1e-5, atol=1e-5)
