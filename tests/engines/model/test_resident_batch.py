"""What a graph computes, step by step, is what the whole batch says, however rows come and go."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from unittest.mock import patch

import cuda_stand_in
import numpy as np
import pytest
from cuda_stand_in import StandIn
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from engines.builtin.device import DeviceBatch
from engines.builtin.engine import Engine
from engines.builtin.model import DecodeTokens
from engines.builtin.model.reference import ReferenceOps
from engines.protocol import EngineConfig, Sampling, SamplingParams

VOCAB_SIZE, NUM_ROWS, BLOCK_SIZE, MAX_MODEL_LEN = 99, 5, 4, 44
CONFIG = """{"architectures": ["OPTForCausalLM"], "hidden_size": 16, "num_hidden_layers": 1,
"num_attention_heads": 2, "ffn_dim": 16, "vocab_size": 99, "max_position_embeddings": 48}"""

KINDS = {
    "plain": {},
    "chunks of prompts": {"max_num_batched_tokens": 6},
    "preemption": {"num_gpu_blocks_override": 14},
    "shared prefixes and preemption": {
        "num_gpu_blocks_override": 14,
        "enable_prefix_caching": True,
    },
    "drafts": {"num_accepted": (1, 3, 2)},
    "drafts and preemption": {"num_accepted": (3, 1), "num_gpu_blocks_override": 16},
    "several steps": {"num_scheduler_steps": 3},
    "log-probabilities": {"logprobs": "lists:1"},
}


@dataclass
class Request:
    """``num_output``: None for as many as there can be, the last without drafts. ``aborted``: in
    which step. ``is_own``: it samples as no other does, so that no graph computes it.
    """

    comes: int
    num_prompt: int
    num_output: int | None
    aborted: int | None
    is_own: bool

    def params(self) -> SamplingParams:
        own = Sampling(2.0, 20, 0.9, seed=7) if self.is_own else None
        return SamplingParams(self.num_output or MAX_MODEL_LEN - self.num_prompt, sampling=own)


REQUESTS = st.lists(
    st.builds(
        Request,
        comes=st.integers(0, 30),
        num_prompt=st.integers(1, 20),
        num_output=st.integers(1, 24) | st.none(),
        aborted=st.none() | st.integers(1, 40),
        is_own=st.sampled_from([False, False, False, True]),
    ),
    min_size=1,
    max_size=14,
)


def served(config: EngineConfig, requests: list[Request]) -> dict[int, list[int] | list[list[int]]]:
    """Tokens of those that were not aborted, or those that log-probabilities are of."""
    engine, tokens, step = Engine(config), {}, 0
    prompts = np.random.default_rng(3).integers(0, VOCAB_SIZE, (len(requests), 20), np.int32)
    last = max(each.comes for each in requests)
    try:
        while step <= last or engine.has_unfinished_requests():
            for index, each in enumerate(requests):
                if each.comes == step:
                    prompt = prompts[index, : each.num_prompt]
                    engine.add_request(index, prompt, each.params())
                if each.aborted == step and each.comes < step and index not in tokens:
                    engine.abort_request(index)
            for delivered in engine.step().delivered:
                for index in delivered.finished.tolist():
                    if config.logprobs != "none":
                        tokens[index] = [list(each) for each in engine.output_logprobs(index)]
                        engine.output_token_ids(index)
                        continue
                    tokens[index] = engine.output_token_ids(index).tolist()
            step += 1
    finally:
        engine.shutdown()
    return tokens


def check(found: DecodeTokens, batch: DeviceBatch, width: int, nobody: int) -> None:
    """Against every number of the batch, row by row."""
    assert batch.scheduled is not None
    assert batch.block_table is not None
    places = {row: place for place, row in enumerate(batch.scheduled.rows.tolist())}
    tokens = zip(
        *(each.view(-1, width).tolist() for each in (found.positions, found.slot_mapping)),
        *(each.view(-1, width).tolist() for each in (found.requests, found.outputs)),
        strict=True,
    )
    rows = found.rows.tolist()
    replayed = [row for row in rows if row != nobody]
    assert rows == [*replayed, *[nobody] * (len(rows) - len(replayed))]
    assert len(set(replayed)) == len(replayed)
    for row, seq_len, (positions, slots, requests, outputs) in zip(
        rows, found.seq_lens.tolist(), tokens, strict=True
    ):
        if row == nobody:
            assert seq_len == width
            continue
        place = places[row]
        context, sampled = int(batch.context[place]), int(batch.position[place])
        assert seq_len == context
        assert positions == list(range(context - width, context))
        blocks = batch.block_table[row]
        assert slots == [
            blocks[each // BLOCK_SIZE] * BLOCK_SIZE + each % BLOCK_SIZE for each in positions
        ]
        assert requests == [batch.request_index[place]] * width
        assert outputs == list(range(sampled, sampled + width))


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> EngineConfig:
    path = tmp_path_factory.mktemp("model") / "config.json"
    path.write_text(CONFIG)
    return EngineConfig(
        max_num_seqs=NUM_ROWS,
        max_model_len=MAX_MODEL_LEN,
        block_size=BLOCK_SIZE,
        model=str(path),
        device="cuda",
        dtype="float32",
        seed=5,
    )


@pytest.fixture(scope="module", autouse=True)
def gpu() -> Iterator[StandIn]:
    stand_in, stack = cuda_stand_in.install()
    with stack:
        yield stand_in


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["inline", "overlapped"])
@pytest.mark.parametrize("kind", KINDS)
@given(requests=REQUESTS, is_ahead=st.booleans())
@examples(60, [HealthCheck.too_slow])
def test_what_is_computed_is_what_the_whole_batch_says(gpu, config, kind, mode, requests, is_ahead):
    from engines.builtin.device.cuda_model import CudaModel

    gpu.is_ahead = is_ahead
    config = replace(config, output_processing=mode, **KINDS[kind])
    decode_tokens, launch = ReferenceOps.decode_tokens, CudaModel.launch
    decodes: list[DecodeTokens] = []

    def spied(*arguments, **options):
        decodes.append(decode_tokens(*arguments, **options))
        return decodes[-1]

    def checked(model, batch):
        decodes.clear()
        handle = launch(model, batch)
        for found in decodes:
            check(found, batch, max(config.num_accepted), NUM_ROWS)
        return handle

    with (
        patch.object(ReferenceOps, "decode_tokens", spied),
        patch.object(CudaModel, "launch", checked),
    ):
        found = served(config, requests)
    assert found == served(replace(config, device="cpu"), requests)
