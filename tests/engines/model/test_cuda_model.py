"""The engine's CUDA device on a stand-in for torch.cuda: the CPU's tokens, by graphs."""

import os
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from unittest.mock import patch

import cuda_stand_in
import numpy as np
import pytest
import torch
from cuda_stand_in import StandIn
from examples import every

from engines.builtin.engine import Engine
from engines.builtin.model.parallel import ONE_RANK
from engines.protocol import EngineConfig, Sampling, SamplingParams

VOCAB_SIZE, MAX_MODEL_LEN = 99, 64
CONFIG = """{"architectures": ["OPTForCausalLM"], "hidden_size": 32, "num_hidden_layers": 2,
"num_attention_heads": 4, "ffn_dim": 48, "vocab_size": 99, "max_position_embeddings": 64}"""


@pytest.fixture
def gpu() -> Iterator[StandIn]:
    stand_in, stack = cuda_stand_in.install()
    with stack:
        yield stand_in


@pytest.fixture
def config(tmp_path) -> EngineConfig:
    path = tmp_path / "config.json"
    path.write_text(CONFIG)
    return EngineConfig(
        max_num_seqs=6,
        max_model_len=MAX_MODEL_LEN,
        block_size=4,
        model=str(path),
        device="cuda",
        dtype="float32",
        seed=3,
    )


class Run:
    """Requests that come one after the other, so that prompts run beside rows that decode."""

    def __init__(
        self, config: EngineConfig, count: int = 16, own: dict[int, Sampling] | None = None
    ) -> None:
        random = Random(4)
        self.num_steps = 0
        self.device_seconds: list[float] = []
        self.tokens: dict[int, list[int]] = {}
        self.logprobs: dict[int, list[dict[int, float]]] = {}
        engine = Engine(config)
        waiting = list(range(count))
        lengths = [(random.randint(1, 20), random.randint(1, 24)) for _ in waiting]
        try:
            while waiting or engine.has_unfinished_requests():
                for index in waiting[:2]:
                    prompt = random.choices(range(VOCAB_SIZE), k=lengths[index][0])
                    params = SamplingParams(lengths[index][1], sampling=(own or {}).get(index))
                    engine.add_request(index, np.array(prompt, np.int32), params)
                del waiting[:2]
                output = engine.step()
                self.num_steps += 1
                self.device_seconds.append(output.device_seconds)
                for delivered in output.delivered:
                    for index in delivered.finished.tolist():
                        if config.logprobs != "none":
                            self.logprobs[index] = [
                                {token: entry.logprob for token, entry in position.items()}
                                for position in engine.output_logprobs(index)
                            ]
                        self.tokens[index] = engine.output_token_ids(index).tolist()
        finally:
            engine.shutdown()


VARIANTS = {
    "plain": {},
    "chunks of prompts": {"max_num_batched_tokens": 7},
    "preemption": {"num_gpu_blocks_override": 24},
    "shared prefixes": {"enable_prefix_caching": True},
    "drafts": {"num_accepted": (1, 3, 2)},
    "drafts with log-probabilities": {"num_accepted": (3, 1), "logprobs": "lists:2"},
    "log-probabilities": {"logprobs": "lists:2"},
    "several steps": {"num_scheduler_steps": 4},
    "sampling": {"sampling": "0.9:40:0.9"},
    "eager": {"enforce_eager": True},
}


MODES = ("inline", "overlapped")
CASES = [
    (variant, mode)
    for nth, variant in enumerate(VARIANTS)
    for mode in MODES
    if every() == 1 or mode == MODES[nth % 2]
]
"""Each variant in both modes by the full profile, else in one of them."""


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "mode"), CASES)
def test_the_tokens_are_those_of_the_cpu(gpu, config, variant, mode):
    """Every draw is the same; logits may differ in the last bit, with the rows beside them."""
    config = replace(config, output_processing=mode, **VARIANTS[variant])
    found, expected = Run(config), Run(replace(config, device="cpu"))
    assert found.tokens == expected.tokens
    for index, positions in expected.logprobs.items():
        for one, other in zip(found.logprobs[index], positions, strict=True):
            assert one == pytest.approx(other, abs=1e-4)
    assert (gpu.num_replays > 0) != config.enforce_eager


@pytest.mark.slow
def test_rows_that_decode_are_replayed_beside_prompts(gpu, config):
    config = replace(config, max_num_batched_tokens=9)
    Run(config, count=0)
    before = 2 * gpu.num_transfers  # to get ready, here and there
    run = Run(config, count=30)
    assert gpu.num_replays >= run.num_steps - 4, "all steps but the first have such a row"
    assert gpu.num_transfers <= before + run.num_steps, "both parts of a step come in one"


@pytest.mark.slow
def test_a_launch_in_which_nothing_changes_sends_nothing_and_calls_torch_for_nothing(gpu, config):
    """The rows come with the first replay; where the context grows into a block, that comes."""
    from engines.builtin.device.cuda_model import CudaModel

    sent, calls, launch = [], [], CudaModel.launch

    def counted(model, batch):
        before = gpu.num_transfers, gpu.num_calls
        handle = launch(model, batch)
        sent.append(gpu.num_transfers - before[0])
        calls.append(gpu.num_calls - before[1])
        return handle

    engine = Engine(config)
    for index in range(3):
        engine.add_request(index, np.zeros(3, np.int32), SamplingParams(20))
    engine.step()
    with patch.object(CudaModel, "launch", counted):
        for context in range(4, 12):
            engine.step()
            assert sent[-1] == (context in (4, 5, 9)), context
            assert (calls[-1] > 0) == sent[-1], context
    engine.shutdown()


@pytest.mark.slow
def test_drafts_are_replayed(gpu, config):
    run = Run(replace(config, num_accepted=(1, 4)))
    assert gpu.num_replays >= run.num_steps / 2


@pytest.mark.slow
def test_rows_that_sample_by_themselves_are_computed_beside_the_graphs(gpu, config):
    own = {index: Sampling(2.0, 20, 0.9, seed=index) for index in range(0, 16, 3)}
    expected = Run(replace(config, device="cpu"), own=own)
    assert Run(config, own=own).tokens == expected.tokens != Run(config).tokens


@pytest.mark.slow
@pytest.mark.parametrize("enforce_eager", [False, True])
def test_the_time_of_a_step_begins_when_all_of_it_has_been_brought(gpu, config, enforce_eager):
    """On the stand-in's clock only the host's part takes time: device time holds none of it."""
    run = Run(replace(config, enforce_eager=enforce_eager))
    assert gpu.num_transfers >= run.num_steps
    assert run.device_seconds == [0.0] * len(run.device_seconds)


@pytest.mark.slow
@pytest.mark.parametrize("logprobs", ["none", "lists:2"])
def test_the_time_of_a_replayed_step_holds_nothing_of_the_host(config, logprobs):
    """On a clock that every call of torch moves, which no device waits for: a GPU would."""
    stand_in, stack = cuda_stand_in.install(lambda: float(stand_in.num_calls))
    with stack:
        run = Run(replace(config, logprobs=logprobs), count=2)
    prompts, *decodes = run.device_seconds
    assert prompts > 0
    assert len(decodes) > 3
    assert set(decodes) == {0.0}


@pytest.mark.slow
def test_as_many_graphs_are_captured_as_a_batch_passes_through(gpu, config):
    Run(replace(config, max_num_seqs=200), count=1)
    assert gpu.num_captures <= 12


@pytest.fixture
def small_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A cache for all rows at their longest does not fit."""
    monkeypatch.setattr(cuda_stand_in, "MEMORY_BYTES", 160 << 20)
    stand_in, stack = cuda_stand_in.install()
    with stack:
        yield stand_in


def room_of(config: EngineConfig) -> tuple[int, int]:
    """Tokens that the cache holds, and bytes of each."""
    from engines.builtin.device.cuda_model import CudaModel

    model = CudaModel(config, ONE_RANK)
    return model.num_kv_tokens(config), 2 * 2 * 32 * 4


def test_what_the_graphs_keep_is_not_there_for_the_cache(small_gpu, config):
    """A pool of their own holds what their largest step takes, beside what runs eagerly."""
    config = replace(config, max_num_seqs=2000, max_num_batched_tokens=2000)
    eagerly, bytes_per_token = room_of(replace(config, enforce_eager=True))
    by_graphs, _ = room_of(config)
    logits = 2000 * VOCAB_SIZE * 4
    assert (eagerly - by_graphs) * bytes_per_token >= logits
    assert small_gpu.num_captures == 0


def test_blocks_that_were_asked_for_are_had_whatever_else_is_on_the_gpu(gpu, config, monkeypatch):
    """So that trials which stand there side by side are scheduled as each would be alone."""
    asked = replace(config, num_gpu_blocks_override=34)
    alone = Run(asked)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (0, cuda_stand_in.MEMORY_BYTES))
    beside = Run(asked)
    assert (beside.tokens, beside.num_steps) == (alone.tokens, alone.num_steps)
    with pytest.raises(
        ValueError, match=r"leaves 0\.0 GB of the GPU for the KV cache: no sequence"
    ):
        Run(config)


@pytest.mark.parametrize(
    "mode", ["inline", "overlapped", "thread", pytest.param("process", marks=pytest.mark.slow)]
)
def test_nothing_forks_once_the_gpu_is_in_use(gpu, config, monkeypatch, mode):
    """CUDA does not work in a fork; an output process is a program of its own."""
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("forked"))
    assert len(Run(replace(config, output_processing=mode)).tokens) == 16


def test_more_rows_of_drafts_than_a_grid_has_are_one_sentence(gpu, config):
    with pytest.raises(ValueError, match=r"batch size 20,000 with 4 tokens a step each: .* 65,535"):
        Engine(replace(config, max_num_seqs=20_000, num_accepted=(1, 4)))
