"""The engine over a real model: its tokens are those of transformers, however they came about."""

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
import rpc_calls
import torch
from harness_free import MODES, variants
from processes import children
from tiny_models import VOCAB_SIZE, Saved, save

from engines.builtin.engine import Engine
from engines.protocol import EngineConfig, EngineDeadError, SamplingParams

LONGEST_PROMPT, MOST_TOKENS, MAX_MODEL_LEN = 24, 12, 40
_TIE = 1e-3
"""Two logits nearer than that may change places with the order of additions."""


class Asked(NamedTuple):
    prompt: list[int]
    max_tokens: int
    add_at: int


@pytest.fixture(scope="module", params=["opt", "llama-gqa", "mistral", "qwen2", "qwen3"])
def saved(request, tmp_path_factory) -> Saved:
    pytest.importorskip("transformers")
    return save(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def opt(tmp_path_factory) -> Saved:
    return save("opt", tmp_path_factory.mktemp("opt-alone"))


def cpu_config(folder: Path, **fields: object) -> EngineConfig:
    known = {"max_num_seqs": 4, "max_model_len": MAX_MODEL_LEN, "device": "cpu", "block_size": 4}
    return EngineConfig(**known | {"model": str(folder)} | fields)


def draw_requests(random: Random, count: int) -> list[Asked]:
    """Some of them begin alike, so that a prefix cache has something to find."""
    shared = random.choices(range(VOCAB_SIZE), k=13)
    requests = []
    for _ in range(count):
        head = shared[: random.choice([0, 0, 4, 9, 13])]
        tail = random.choices(range(VOCAB_SIZE), k=random.randint(1, LONGEST_PROMPT - 13))
        requests.append(Asked(head + tail, random.randint(1, MOST_TOKENS), random.randint(0, 6)))
    return requests


def serve(engine: Engine, requests: Sequence[Asked]) -> list[list[int]]:
    """Every request's tokens; the engine is ended."""
    step, found = 0, {}
    try:
        while engine.has_unfinished_requests() or step <= max(r.add_at for r in requests):
            for index, asked in enumerate(requests):
                if asked.add_at == step:
                    prompt = np.array(asked.prompt, np.int32)
                    engine.add_request(index, prompt, SamplingParams(asked.max_tokens))
            for delivered in engine.step().delivered:
                for index in delivered.finished.tolist():
                    found[index] = engine.output_token_ids(index).tolist()
            step += 1
    finally:
        engine.shutdown()
    return [found[index] for index in range(len(requests))]


def drain(engine: Engine) -> None:
    while engine.has_unfinished_requests():
        engine.step()


def check_greedy(saved: Saved, requests: Sequence[Asked], tokens: Sequence[list[int]]) -> None:
    """Each token is the likeliest after all before it, or as likely but for rounding."""
    for asked, got in zip(requests, tokens, strict=True):
        assert len(got) == asked.max_tokens
        logits = saved.logits([*asked.prompt, *got])[len(asked.prompt) - 1 : -1]
        chosen = logits.gather(1, torch.tensor(got)[:, None])[:, 0]
        assert (logits.max(1).values - chosen).max() <= _TIE


@pytest.mark.parametrize("seed", range(12))
def test_tokens_are_those_of_transformers(saved, seed):
    """Chunked prefills, mixed steps, preemption, shared prefixes, one and two steps under way, of
    one pass and of several.
    """
    random = Random(seed)
    one_request = -(-(MAX_MODEL_LEN + 2) // 4)
    config = cpu_config(
        saved.folder,
        max_num_seqs=random.randint(1, 6),
        max_num_batched_tokens=random.choice([5, 11, 200]),
        num_gpu_blocks_override=random.choice([0, one_request, 2 * one_request]),
        enable_prefix_caching=random.random() < 0.6,
        output_processing=random.choice(MODES),
        num_scheduler_steps=random.choice([1, 3]),
    )
    requests = draw_requests(random, random.randint(2, 8))
    check_greedy(saved, requests, serve(Engine(config), requests))


def test_preemption_and_prefixes_happened_and_changed_nothing(saved):
    requests = [r._replace(max_tokens=MOST_TOKENS) for r in draw_requests(Random(3), 8)]
    config = cpu_config(saved.folder, max_num_seqs=6)
    plain = serve(Engine(config), requests)
    tight = Engine(replace(config, num_gpu_blocks_override=12, enable_prefix_caching=True))
    assert serve(tight, requests) == plain
    stats = tight.scheduler_stats()
    assert stats["num_preemptions"] > 0
    assert stats["prefix_cache_hits"] > 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("representation", "delivery"), list(variants()))
def test_every_representation_and_delivery(opt, representation, delivery, mode):
    requests = draw_requests(Random(5), 6)
    config = cpu_config(opt.folder, output_processing=mode)
    config = replace(config, representation=representation, delivery=delivery)
    check_greedy(opt, requests, serve(Engine(config), requests))


def test_accepted_drafts_are_counted_as_for_scripted_tokens(opt):
    """As many tokens a step as the table says; each the model's own for the position before."""
    requests = draw_requests(Random(1), 5)
    tables = cpu_config(opt.folder, num_accepted=(1, 3, 2), seed=7)
    model, scripted = Engine(tables), Engine(replace(tables, device="null"))
    counts: dict[Engine, list[list[int]]] = {model: [], scripted: []}
    for engine, seen in counts.items():
        for index, asked in enumerate(requests):
            prompt = np.array(asked.prompt, np.int32)
            engine.add_request(index, prompt, SamplingParams(asked.max_tokens))
        while engine.has_unfinished_requests():
            seen += [each.num_tokens.tolist() for each in engine.step().delivered]
    assert counts[model] == counts[scripted]
    for index, asked in enumerate(requests):
        got = model.output_token_ids(index)
        assert len(got) == asked.max_tokens
        assert got[0] == int(opt.logits(asked.prompt)[-1].argmax())


def test_drafts_all_accepted_are_the_last_token_over_again(opt):
    """Verified at once: position i's logits are those after i copies of the token before."""
    prompt = [5, 17, 3]
    engine = Engine(cpu_config(opt.folder, num_accepted=(3,)))
    engine.add_request(0, np.array(prompt, np.int32), SamplingParams(7))
    drain(engine)
    got = engine.output_token_ids(0).tolist()
    written = list(prompt)
    expected = [int(opt.logits(written)[-1].argmax())]
    while len(expected) < 7:
        written += [expected[-1]] * 3
        expected += opt.logits(written)[-3:].argmax(1).tolist()
    assert got == expected[:7]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("prompt_len", [1, 4, 63])
def test_drafts_end_where_the_models_positions_do(saved, mode, prompt_len):
    """The last step verifies fewer; one that is under way when it ends reads nothing beyond."""
    longest = saved.expected.config.max_position_embeddings
    config = cpu_config(saved.folder, num_accepted=(6,), output_processing=mode)
    engine = Engine(replace(config, max_model_len=longest))
    prompt = [7 * i % VOCAB_SIZE for i in range(prompt_len)]
    engine.add_request(0, np.array(prompt, np.int32), SamplingParams(longest - prompt_len))
    drain(engine)
    got = engine.output_token_ids(0).tolist()
    written, expected = list(prompt), [int(saved.logits(prompt)[-1].argmax())]
    while len(prompt) + len(expected) < longest:
        drafted = min(6, longest - len(prompt) - len(expected))
        written += [expected[-1]] * drafted
        expected += saved.logits(written)[-drafted:].argmax(1).tolist()
    assert got == expected


@pytest.mark.parametrize("budget", [2, 100])
@pytest.mark.parametrize("logprobs", ["lists:3", "arrays:3"])
def test_log_probabilities_are_the_models(saved, logprobs, budget):
    """With a small budget there are steps in which nothing is sampled."""
    prompt = [4, 8, 15, 16, 23]
    config = cpu_config(saved.folder, logprobs=logprobs, max_num_batched_tokens=budget)
    engine = Engine(config)
    engine.add_request(0, np.array(prompt, np.int32), SamplingParams(4))
    drain(engine)
    drawn = list(engine.output_logprobs(0))
    tokens = engine.output_token_ids(0).tolist()
    expected = saved.logits([*prompt, *tokens]).log_softmax(-1)[len(prompt) - 1 : -1]
    for token, position, row in zip(tokens, drawn, expected, strict=True):
        likeliest = row.topk(3)
        assert set(position) == set(likeliest.indices.tolist())
        assert position[token].rank == 1
        for token_id, value in zip(likeliest.indices.tolist(), likeliest.values, strict=True):
            assert position[token_id].logprob == pytest.approx(float(value), abs=1e-4)


def test_sampling_depends_on_seed_request_and_position_alone(opt):
    requests = [asked._replace(add_at=0) for asked in draw_requests(Random(2), 6)]
    config = cpu_config(opt.folder, sampling="1.5:40:0.95", seed=11)
    alone = serve(Engine(replace(config, max_num_seqs=1)), requests)
    together = serve(Engine(replace(config, max_num_seqs=6)), requests)
    assert alone == together
    assert serve(Engine(replace(config, seed=12)), requests) != alone
    assert serve(Engine(replace(config, sampling="greedy")), requests) != alone


def test_top_k_of_one_is_greedy(opt):
    requests = draw_requests(Random(4), 4)
    tokens = serve(Engine(cpu_config(opt.folder, sampling="2.0:1")), requests)
    check_greedy(opt, requests, tokens)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_together_are_one(opt, ranks):
    """Over gloo, each in a process of its own."""
    requests = draw_requests(Random(6), 6)
    config = cpu_config(
        opt.folder, worker="process", tensor_parallel_size=ranks, num_gpu_blocks_override=16
    )
    check_greedy(opt, requests, serve(Engine(config), requests))


@pytest.mark.slow
def test_no_weights_cross_to_a_worker(opt):
    """It reads them from the folder that it is told."""
    weights = (opt.folder / "model.safetensors").stat().st_size
    engine = Engine(cpu_config(opt.folder, worker="process"))
    try:
        assert 0 < engine.wire_bytes < weights / 20
    finally:
        engine.shutdown()


@pytest.mark.slow
def test_a_rank_that_is_killed_is_named(opt, monkeypatch):
    """The others would wait for it in a sum for ever."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=":")
    before = children()
    engine = Engine(cpu_config(opt.folder, worker="process", tensor_parallel_size=2))
    try:
        _, _, (_, second) = engine.collective_rpc(rpc_calls.describe)
        engine.add_request(0, np.arange(8, dtype=np.int32), SamplingParams(20))
        engine.step()
        os.kill(second, signal.SIGKILL)
        sentence = rf"\(pid {second}\) was killed by SIGKILL$"
        with pytest.raises(EngineDeadError, match=sentence):
            drain(engine)
    finally:
        engine.shutdown()
    assert children() <= before


def test_text_is_that_of_the_tokenizer_where_the_model_has_more_tokens(tmp_path):
    """A model with random weights may want tokens that the tokenizer has not."""
    path = tmp_path / "config.json"
    path.write_text(
        '{"architectures": ["OPTForCausalLM"], "hidden_size": 16, "num_hidden_layers": 1, '
        '"num_attention_heads": 2, "ffn_dim": 16, "vocab_size": 9000, '
        '"max_position_embeddings": 64}'
    )
    config = EngineConfig(
        max_num_seqs=2,
        max_model_len=40,
        device="cpu",
        model=str(path),
        detokenizer="byte_table",
        vocab_size=8192,
        sampling="5.0",
    )
    engine = Engine(config)
    engine.add_request(0, np.arange(8, dtype=np.int32), SamplingParams(30))
    drain(engine)
    assert engine.output_text(0)
    assert engine.output_token_ids(0).max() < 8192


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"max_model_len": 65}, "requests of up to 65 tokens: .* has positions for 64; ask for"),
        ({"dtype": "int4"}, "--axis dtype=int4: must be one of auto, float32, bfloat16, float16"),
        ({"sampling": "hot"}, r"--axis sampling=hot: must be greedy or TEMPERATURE\[:TOP_K"),
        ({"sampling": "1:-2"}, "--axis sampling=1:-2: must be greedy or"),
        ({"sampling": "nan"}, "--axis sampling=nan: must be greedy or"),
        ({"num_gpu_blocks_override": 3}, "KV cache of 3 blocks: a request of 40 tokens needs 11"),
        (
            {"tensor_parallel_size": 3, "worker": "process"},
            "--axis tensor-parallel=3: does not divide",
        ),
        (
            {"tensor_parallel_size": 2},
            "--axis tensor-parallel=2 in one process: .*use --worker process",
        ),
        ({"tensor_parallel_size": 0}, "--axis tensor-parallel=0: must be at least 1"),
        ({"device": "cuda", "max_num_seqs": 70_000}, "batch size 70,000: .* 65,535 rows"),
        ({"model": "opt-126m"}, "unknown model 'opt-126m'.*did you mean opt-125m"),
    ],
)
def test_what_cannot_be(opt, fields, sentence):
    config = cpu_config(opt.folder, **fields)
    with pytest.raises(ValueError, match=sentence) as caught:
        Engine(config)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_that_is_not_there(opt):
    with pytest.raises(ValueError, match="--device cuda: torch finds no CUDA device here; use"):
        Engine(cpu_config(opt.folder, device="cuda"))
