"""All families against transformers: the same logits however requests are cut and mixed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest
import torch
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import VARIANTS, VOCAB_SIZE, Requests, Saved, ThreadRanks, build, save

from engines.builtin.model import ForwardBatch, Parallel
from engines.builtin.model.architectures import build_model
from engines.builtin.model.config import load_model
from engines.builtin.model.parallel import ONE_RANK
from engines.builtin.model.reference import ReferenceOps
from engines.builtin.model.weights import Weights

pytestmark = pytest.mark.slow  # of what transformers is asked in test_model_engine, the details

CLOSE = {"rtol": 1e-4, "atol": 1e-4}


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Saved]:
    folder = tmp_path_factory.mktemp("models")
    return {variant: save(variant, folder / variant) for variant in VARIANTS}


def tokens(seed: int, count: int) -> list[int]:
    random = Random(seed)
    return [random.randrange(VOCAB_SIZE) for _ in range(count)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_prompt_at_once(saved, variant):
    prompt = tokens(1, 50)
    requests = Requests(*build(saved[variant].folder))
    logits = requests.step({requests.add(): prompt})[0]
    torch.testing.assert_close(logits, saved[variant].logits(prompt), **CLOSE)


@pytest.mark.parametrize("variant", VARIANTS)
def test_greedy_tokens_in_two_chunks_and_token_by_token(saved, variant):
    prompt, got = tokens(2, 21), []
    requests = Requests(*build(saved[variant].folder))
    request = requests.add()
    requests.step({request: prompt[:9]})
    chunk = prompt[9:]
    while len(got) < 12:
        got.append(int(requests.step({request: chunk})[request][-1].argmax()))
        chunk = got[-1:]
    assert got == saved[variant].greedy(prompt, 12)


@pytest.mark.parametrize("variant", ["opt", "llama-gqa", "llama3-rope", "qwen2", "qwen3"])
@examples(15)
@given(data=st.data())
def test_any_requests_in_any_chunks_in_any_company(saved, variant, data):
    prompts = data.draw(
        st.lists(
            st.lists(st.integers(0, VOCAB_SIZE - 1), min_size=1, max_size=24),
            min_size=1,
            max_size=4,
        )
    )
    block_size = data.draw(st.sampled_from([1, 3, 4, 16]))
    requests = Requests(*build(saved[variant].folder), block_size=block_size, num_blocks=100)
    left = {requests.add(): prompt for prompt in prompts}
    got: dict[int, list[torch.Tensor]] = {request: [] for request in left}
    while left:
        sizes = {r: data.draw(st.integers(0, len(prompt))) for r, prompt in left.items()}
        chunks = {r: left[r][:size] for r, size in sizes.items() if size}
        if not chunks:
            first = next(iter(left))
            chunks = {first: left[first][:1]}
        for request, logits in requests.step(chunks).items():
            got[request].append(logits)
            left[request] = left[request][len(chunks[request]) :]
        left = {request: prompt for request, prompt in left.items() if prompt}
    for request, prompt in enumerate(prompts):
        expected = saved[variant].logits(prompt)
        torch.testing.assert_close(torch.cat(got[request]), expected, **CLOSE)


@pytest.mark.parametrize("variant", ["opt", "llama-gqa"])
def test_a_prefix_that_another_request_has_computed(saved, variant):
    prefix, first, second = tokens(3, 8), tokens(4, 5), tokens(5, 7)
    requests = Requests(*build(saved[variant].folder), block_size=4)
    one = requests.add()
    requests.step({one: prefix + first})
    other = requests.add(prefix_of=one, num_shared_blocks=2)
    more = tokens(6, 1)
    got = requests.step({one: more, other: second})
    expected = saved[variant].logits(prefix + second)[len(prefix) :]
    torch.testing.assert_close(got[other], expected, **CLOSE)
    expected = saved[variant].logits(prefix + first + more)[-1:]
    torch.testing.assert_close(got[one], expected, **CLOSE)


def test_a_written_block_is_what_attention_reads(saved):
    """The same step with one cached value other than it was gives other logits."""
    prompt = tokens(7, 10)
    for touched in (False, True):
        requests = Requests(*build(saved["llama-gqa"].folder))
        request = requests.add()
        requests.step({request: prompt[:9]})
        if touched:
            values = requests.caches[0][1]
            values[~values.isnan()] += 1
        logits = requests.step({request: prompt[9:]})[request]
        expected = saved["llama-gqa"].logits(prompt)[-1:]
        assert torch.allclose(logits, expected, **CLOSE) is not touched


@pytest.mark.parametrize("variant", ["opt", "llama-gqa"])
def test_bfloat16_is_near(saved, variant):
    prompt, dtype = tokens(8, 20), torch.bfloat16
    model, config = build(saved[variant].folder, dtype=dtype)
    requests = Requests(model, config, dtype=dtype)
    logits = requests.step({requests.add(): prompt})[0]
    assert logits.dtype == dtype
    expected = saved[variant].logits(prompt)
    assert (logits.float() - expected).abs().mean() < 0.05 * expected.abs().mean()


def test_shards_are_read_as_one_file(saved, tmp_path):
    sharded = save("llama-gqa", tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    prompt = tokens(9, 12)
    requests = Requests(*build(tmp_path))
    logits = requests.step({requests.add(): prompt})[0]
    torch.testing.assert_close(logits, sharded.logits(prompt), **CLOSE)


def run_rank(folder: Path, parallel: Parallel, prompt: list[int]) -> list[torch.Tensor]:
    """Logits of a prompt in two chunks, of one rank."""
    requests = Requests(*build(folder, parallel), size=parallel.size)
    request = requests.add()
    return [requests.step({request: chunk})[request] for chunk in (prompt[:7], prompt[7:])]


@pytest.mark.parametrize(
    "variant", ["opt", "opt-own-head", "llama-biases", "llama3-rope", "qwen2", "qwen3-tied"]
)
def test_two_ranks_say_what_one_says(saved, variant):
    prompt = tokens(10, 13)
    with ThreadPoolExecutor(2) as pool:
        ranks = ThreadRanks(2).ranks
        one, two = pool.map(lambda rank: run_rank(saved[variant].folder, rank, prompt), ranks)
    expected = saved[variant].logits(prompt)
    torch.testing.assert_close(torch.cat(one), expected, **CLOSE)
    assert torch.equal(torch.cat(one), torch.cat(two)), "the ranks must sample the same"


@pytest.mark.parametrize(
    ("variant", "size", "what"),
    [
        ("opt", 3, "4 attention heads"),
        ("llama-gqa", 4, "2 KV heads"),
        ("llama-mqa-tied", 2, "1 KV heads"),
    ],
)
def test_ranks_that_cannot_share_evenly_are_refused(saved, variant, size, what):
    with pytest.raises(
        ValueError, match=f"--axis tensor-parallel={size}: does not divide .* {what};"
    ):
        build(saved[variant].folder, ThreadRanks(size).ranks[0])


class NoValues(Weights):
    """Weights that have a shape and nothing in it."""

    def take(self, name, shape, *, part=None):
        whole = torch.empty(shape, device="meta")
        return whole if part is None else whole.chunk(part[2], part[0])[part[1]]


class ShapesOnly(ReferenceOps):
    """What a kernel would launch, with no value read."""

    def rotate_and_cache(self, q, k, v, norms, cos_sin, cache, batch):
        assert (k.shape, v.shape) == ((q.shape[0], *cache.shape[2:3], q.shape[2]),) * 2

    def attention(self, q, cache, batch, scale):
        return torch.empty_like(q)


class OneOfTwo:
    """A rank that hears nothing of the other, and has half of all that is divided."""

    rank, size = 1, 2

    def all_reduce(self, x):
        return x

    def all_gather(self, x):
        return torch.cat([x, x], -1)


@pytest.mark.parametrize("name", ["opt-125m", "llama-3.2-1b", "qwen3-0.6b"])
def test_a_pass_reads_no_value_on_the_host(name):
    """A tensor of torch's meta device has none to read, as none can be in a captured graph."""
    source = load_model(name)
    meta = torch.device("meta")
    weights = NoValues(source, meta, torch.float32, 0)
    config = source.config
    for parallel in (ONE_RANK, OneOfTwo()):
        model = build_model(config, weights, ShapesOnly(), parallel)
        heads = config.num_key_value_heads // parallel.size
        caches = [torch.empty(2, 9, heads, 4, config.head_dim, device=meta)]
        ids = torch.empty(5, dtype=torch.int64, device=meta)
        lengths = ids.int()
        batch = ForwardBatch(ids, ids, lengths, lengths, torch.empty(6, device=meta), lengths, 1, 5)
        hidden = model.forward(ids, batch, caches * config.num_hidden_layers)
        assert hidden.shape == (5, config.hidden_size)
        assert model.logits(hidden[:2]).shape == (2, config.vocab_size)
