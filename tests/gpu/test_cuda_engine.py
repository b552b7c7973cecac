"""The engine on a GPU: graphs against eager steps, every shape, against the model on the CPU."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from engines.builtin.device import cpu_model
from engines.builtin.engine import Engine
from engines.builtin.model.architectures import build_model
from engines.builtin.model.ceilings import Ceilings
from engines.builtin.model.config import load_model
from engines.builtin.model.gumbel_reference import gumbel_noise, row_keys, sample_reference
from engines.builtin.model.parallel import ONE_RANK
from engines.builtin.model.reference import ReferenceOps
from engines.builtin.model.weights import Weights
from engines.builtin.registries import DELIVERIES, OUTPUT_PROCESSING, REPRESENTATIONS
from engines.protocol import ContradictionError, EngineConfig, SamplingParams

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]

NUM_REQUESTS = 8 if os.environ.get("TRITON_INTERPRET") else 40
"""A rehearsal computes them on a CPU."""

CONFIG = """{"architectures": ["LlamaForCausalLM"], "hidden_size": 256, "num_hidden_layers": 3,
"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "intermediate_size": 512,
"vocab_size": 1000, "max_position_embeddings": 512, "rms_norm_eps": 1e-5}"""


class Kept(Weights):
    """Random weights as the CPU draws them, by name: a GPU's generator draws others."""

    def __init__(self, config_path: Path) -> None:
        source = load_model(str(config_path))
        super().__init__(source, torch.device("cpu"), torch.float32, seed=3)
        self.taken: dict[str, torch.Tensor] = {}
        build_model(source.config, self, ReferenceOps(), ONE_RANK)

    def take(self, name, shape, *, part=None):
        self.taken[name] = super().take(name, shape, part=part)
        return self.taken[name]


def written(folder: Path, model_config: str) -> EngineConfig:
    (folder / "config.json").write_text(model_config)
    save_file(Kept(folder / "config.json").taken, folder / "model.safetensors")
    return EngineConfig(
        max_num_seqs=24,
        max_model_len=200,
        model=str(folder),
        device="cuda",
        dtype="float32",
        seed=3,
    )


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> EngineConfig:
    return written(tmp_path_factory.mktemp("model"), CONFIG)


def requests() -> list[tuple[list[int], int]]:
    random = Random(0)
    return [
        (random.choices(range(1000), k=random.randint(1, 120)), random.randint(1, 60))
        for _ in range(NUM_REQUESTS)
    ]


class Served(NamedTuple):
    """Tokens by request, and how often one was preempted."""

    tokens: list[list[int]]
    num_preemptions: int


def serve(config: EngineConfig) -> list[list[int]]:
    return served(config).tokens


def served(config: EngineConfig, ready: Callable[[], object] = lambda: None) -> Served:
    engine = Engine(config)
    found = {}
    try:
        ready()
        for index, (prompt, max_tokens) in enumerate(requests()):
            engine.add_request(index, np.array(prompt, np.int32), SamplingParams(max_tokens))
        while engine.has_unfinished_requests():
            for delivered in engine.step().delivered:
                for index in delivered.finished.tolist():
                    found[index] = engine.output_token_ids(index).tolist()
        preemptions = engine.scheduler_stats()["num_preemptions"]
    finally:
        engine.shutdown()
    return Served([found[index] for index in range(len(found))], preemptions)


NEAR_TIE = 1e-4
"""Between the two likeliest tokens: below it the order of additions may decide."""


class OnCpu(NamedTuple):
    """The CPU's tokens, and by how much each was ahead, by request and its how many-th token."""

    tokens: list[list[int]]
    ahead: dict[tuple[int, int], float]


def on_the_cpu(config: EngineConfig) -> OnCpu:
    ahead = {}

    def draw(logits, temperature, seed, request_index, position):
        scores = logits.float()
        if temperature:
            noise = gumbel_noise(row_keys(seed, request_index, position), logits.shape[1])
            scores = scores / temperature + noise
        first, second = scores.topk(2).values.unbind(1)
        places = zip(request_index.tolist(), position.tolist(), strict=True)
        ahead.update(zip(places, (first - second).tolist(), strict=True))
        return sample_reference(logits, temperature, seed, request_index, position)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_model, "sample_reference", draw)
        return OnCpu(serve(replace(config, device="cpu")), ahead)


def assert_same(found: list[list[int]], expected: OnCpu) -> None:
    """Equal, but from a near tie on: what comes after it has another beginning."""
    assert list(map(len, found)) == list(map(len, expected.tokens))
    for index, (ours, theirs) in enumerate(zip(found, expected.tokens, strict=True)):
        if ours != theirs:
            nth = next(nth for nth, token in enumerate(ours) if token != theirs[nth])
            assert expected.ahead[index, nth] < NEAR_TIE, (index, nth)


@pytest.fixture(scope="module")
def on_cpu(config) -> OnCpu:
    return on_the_cpu(config)


@pytest.mark.parametrize("mode", OUTPUT_PROCESSING.names())
@pytest.mark.parametrize("enforce_eager", [False, True])
@pytest.mark.parametrize("sampling", ["greedy", "0.9"])
def test_graphs_and_eager_steps_are_the_cpus(config, on_cpu, mode, enforce_eager, sampling):
    config = replace(config, output_processing=mode, enforce_eager=enforce_eager, sampling=sampling)
    expected = on_cpu if sampling == "greedy" else on_the_cpu(replace(config, enforce_eager=False))
    assert_same(serve(config), expected)


def test_every_representation_and_delivery(config):
    found = []
    for representation in REPRESENTATIONS.names():
        for delivery in DELIVERIES.names():
            cell = replace(config, representation=representation, delivery=delivery)
            with suppress(ContradictionError):
                found.append(serve(cell))
    assert all(tokens == found[0] for tokens in found), "the same steps, the same arithmetic"


def test_a_model_whose_heads_are_normed(tmp_path):
    config = written(tmp_path, CONFIG.replace("Llama", "Qwen3"))
    assert_same(serve(config), on_the_cpu(config))


def test_drafts_and_several_steps(config):
    for fields in ({"num_accepted": (1, 3)}, {"num_scheduler_steps": 4}):
        cell = replace(config, **fields)
        assert_same(serve(cell), on_the_cpu(cell))


def test_prompts_beside_rows_that_decode(config, on_cpu):
    assert_same(serve(replace(config, max_num_batched_tokens=32)), on_cpu)


def test_preemption_and_shared_prefixes(config, on_cpu):
    tight = replace(config, num_gpu_blocks_override=20, enable_prefix_caching=True)
    found = served(tight)
    assert found.num_preemptions > 0
    assert_same(found.tokens, on_cpu)


def test_a_worker_process(config, on_cpu):
    assert_same(serve(replace(config, worker="process")), on_cpu)


@pytest.mark.parametrize("enforce_eager", [False, True])
def test_no_kernel_is_compiled_once_an_engine_is_ready(config, enforce_eager):
    """While a batch fills, beside prompts, and while it drains."""
    compiled = []

    def note(**told) -> None:
        compiled.append(told["fn"])

    triton = pytest.importorskip("triton")
    config = replace(config, max_num_batched_tokens=64, enforce_eager=enforce_eager)
    with pytest.MonkeyPatch.context() as patch:
        hook = partial(patch.setattr, triton.knobs.runtime, "jit_post_compile_hook", note)
        served(config, ready=hook)
    assert compiled == []


def test_a_cache_that_does_not_fit_is_one_sentence(config):
    with pytest.raises(ValueError, match=r"a KV cache of .* GB are free: .* fit; give fewer"):
        Engine(replace(config, num_gpu_blocks_override=2_000_000_000 // 16))


def test_ceilings_for_which_there_is_no_memory_are_left_out():
    gpu = torch.device("cuda", 0)
    memory = torch.cuda.get_device_properties(gpu).total_memory
    ceilings = Ceilings(gpu, torch.float32, memory, 64)
    ceilings.since_last_asked()
    assert ceilings.since_last_asked() == {}
