"""The engine over two processes: requests that come, wait, are preempted and left at any moment."""

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from harness_free import Request, draw_config, draw_requests, oracle
from rpc_calls import describe

from engines.protocol import EngineConfig, EngineDeadError, FinishReason, SamplingParams
from engines.server.engine_client import EngineClient


@pytest.fixture(autouse=True)
def calls_can_be_imported(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=":")


def config_with_few_blocks(random: Random) -> EngineConfig:
    return replace(
        draw_config(random),
        max_num_seqs=5,
        max_num_batched_tokens=24,
        num_accepted=(1, 2, 4),
        num_scheduler_steps=1,
        block_size=4,
        num_gpu_blocks_override=18,
        enable_prefix_caching=True,
        scheduling_policy="priority",
        vocab_size=60,
        output_processing="process",
    )


async def read(client: EngineClient, request: Request) -> tuple[list[int], FinishReason | None]:
    """Its tokens and why it ended; None where it was left after ``abort_at`` outputs."""
    prompt = np.arange(request.prompt_length, dtype=np.int32)
    stream = client.add(request.index, prompt, request.params, request.priority)
    tokens: list[int] = []
    num_outputs = 0
    while True:
        if request.abort_at is not None and num_outputs >= request.abort_at:
            client.leave(request.index, is_finished=False)
            return tokens, None
        output = await stream.get()
        num_outputs += 1
        new = output.outputs[0].token_ids
        tokens += [new] if isinstance(new, int) else new
        if output.finished:
            client.leave(request.index, is_finished=True)
            return tokens, output.outputs[0].finish_reason


def run(config: EngineConfig, use) -> None:
    async def main() -> None:
        client = EngineClient(config)
        try:
            await client.start()
            await use(client)
        finally:
            await client.stop()

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("delivery", "representation"),
    [
        ("per_request", "list_of_lists"),
        pytest.param("vllm_v1", "list_of_lists", marks=pytest.mark.slow),
        ("columnar", "flat_arrays"),
    ],
)
def test_each_request_gets_the_oracles_tokens_whoever_leaves(delivery, representation):
    random = Random(3)
    config = replace(
        config_with_few_blocks(random), delivery=delivery, representation=representation
    )

    async def use(client: EngineClient) -> None:
        for _ in range(30):
            # The same numbers again and again: none may get what is late of its last owner.
            requests = draw_requests(random, config)
            requests = [
                each._replace(abort_at=None if each.abort_at is None else each.abort_at % 4)
                for each in requests
            ]
            for request in requests:
                while client.knows(request.index):
                    await client.gone()
            ended = await asyncio.gather(*(read(client, each) for each in requests))
            for request, (tokens, reason) in zip(requests, ended, strict=True):
                expected, why = oracle(config, request)
                assert (tokens, reason) == (expected, why) or (
                    reason is None and tokens == expected[: len(tokens)]
                )
        await client.idle()
        assert (client.num_running, client.num_waiting) == (0, 0)

    run(config, use)


@pytest.mark.slow
def test_a_call_reaches_front_end_and_core():
    async def use(client: EngineClient) -> None:
        roles = await client.collective_rpc(describe)
        assert roles == [("frontend", os.getpid()), ("engine", client.core_pid)]

    run(config_with_few_blocks(Random(1)), use)


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGKILL, marks=pytest.mark.slow), signal.SIGSTOP]
)
def test_readers_of_a_dead_core_are_told(number):
    async def use(client: EngineClient) -> None:
        params = SamplingParams(60)
        config_len = np.zeros(4, np.int32)
        os.kill(client.core_pid, number)
        stream = client.add(0, config_len, params, 0)
        async with asyncio.timeout(30):
            output = await stream.get()
        assert output.finished
        assert output.outputs[0].finish_reason is FinishReason.ABORT
        assert str(client.core_pid) in client.failure
        with pytest.raises(EngineDeadError, match=str(client.core_pid)):
            await client.call_core(describe)

    run(config_with_few_blocks(Random(1)), use)


def test_an_engine_that_cannot_be_built_says_why():
    config = replace(config_with_few_blocks(Random(1)), num_gpu_blocks_override=2)

    async def use(client: EngineClient) -> None:
        raise AssertionError("it was built")

    with pytest.raises(ValueError, match="KV cache of 2 blocks"):
        run(config, use)
