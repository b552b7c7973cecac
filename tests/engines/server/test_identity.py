"""What comes over HTTP is what the engine gives in process, token for token."""

import asyncio
from random import Random
from typing import Any

import pytest
from served import serving, session, stream

from engines.builtin.engine import Engine
from engines.protocol import FinishReason, SamplingParams
from harness.axes import Cell
from harness.trial.engine_config import engine_config
from workloads.recipe.acceptance import parse_acceptance
from workloads.recipe.lengths import parse_lengths
from workloads.schedule import Schedule
from workloads.workload import Workload

SEED, COUNT, MAX_MODEL_LEN = 5, 40, 96
STOPS = ("e", "in", " t", "()", "er", "self")
REPRESENTATIONS = {
    "per_request": "list_of_lists",
    "vllm_v1": "list_of_lists",
    "columnar": "flat_arrays",
}
REASONS = {FinishReason.STOP: "stop", FinishReason.LENGTH: "length"}


def schedule(tokens_per_step: str) -> Schedule:
    return Workload(
        name="small",
        num_requests=COUNT,
        prompt_lens=parse_lengths("uniform:3:40"),
        output_lens=parse_lengths("uniform:1:50"),
        acceptance=parse_acceptance(tokens_per_step),
    ).realise(SEED)


def wishes(asked: Schedule) -> list[SamplingParams]:
    """Each request's: some with stop strings, a minimum, an end of text that is heeded."""
    random = Random(SEED)
    return [
        SamplingParams(
            length,
            min_tokens=random.choice([0, 0, min(4, length)]),
            stop=tuple(random.sample(STOPS, random.choice([0, 0, 1, 3]))),
            stop_token_ids=tuple(random.sample(range(8192), random.choice([0, 40]))),
            include_stop_str_in_output=random.random() < 0.5,
            ignore_eos=random.random() < 0.5,
        )
        for length in asked.output_lens.tolist()
    ]


def body(prompt: list[int], params: SamplingParams) -> dict[str, Any]:
    names = ("max_tokens", "min_tokens", "include_stop_str_in_output", "ignore_eos")
    return {name: getattr(params, name) for name in names} | {
        "prompt": prompt,
        "stop": list(params.stop),
        "stop_token_ids": list(params.stop_token_ids),
        "return_token_ids": True,
    }


def in_process(cell: Cell, asked: Schedule) -> list[tuple[list[int], str, str]]:
    """Each request's tokens, text and reason."""
    engine = Engine(engine_config(cell, asked))
    reasons: dict[int, str] = {}
    for i, params in enumerate(wishes(asked)):
        engine.add_request(i, asked.prompt_token_ids(i, engine.vocab_size), params)
    while engine.has_unfinished_requests():
        for delivered in engine.step().delivered:
            why = map(FinishReason, delivered.finish_reasons.tolist())
            reasons |= dict(zip(delivered.finished.tolist(), map(REASONS.get, why), strict=True))
    texts = [engine.output_text(i) for i in range(COUNT)]
    return [(engine.output_token_ids(i).tolist(), texts[i], reasons[i]) for i in range(COUNT)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("delivery", "detokenizer", "tokens_per_step"),
    [
        ("per_request", "byte_table", "1..3"),
        pytest.param("vllm_v1", "decode_stream", "1", marks=pytest.mark.slow),
        pytest.param("columnar", "byte_table", "1..3", marks=pytest.mark.slow),
    ],
)
@pytest.mark.landing
def test_streams_are_what_the_engine_gives_in_process(delivery, detokenizer, tokens_per_step):
    asked = schedule(tokens_per_step)
    cell = Cell(
        device="null",
        representation=REPRESENTATIONS[delivery],
        delivery=delivery,
        batch_size=8,
        detokenizer=detokenizer,
        max_model_len=MAX_MODEL_LEN,
    )
    expected = in_process(cell, asked)
    assert {reason for *_, reason in expected} == {"stop", "length"}
    bodies = [
        body(asked.prompt_token_ids(i, 50257).tolist(), params)
        for i, params in enumerate(wishes(asked))
    ]

    async def ask_all(served) -> list[Any]:
        order = Random(1).sample(range(COUNT), COUNT)  # numbers decide, not who comes first
        async with session(served) as http:
            each = [
                stream(http, "/v1/completions", bodies[i], {"X-Request-Index": str(i)})
                for i in order
            ]
            by_number = dict(zip(order, await asyncio.gather(*each), strict=True))
            return [by_number[i] for i in range(COUNT)]

    flags = [
        "--device",
        "null",
        "--batch-size",
        "8",
        "--axis",
        f"max-model-len={MAX_MODEL_LEN}",
        "--delivery",
        delivery,
        "--representation",
        REPRESENTATIONS[delivery],
        "--axis",
        f"detokenizer={detokenizer}",
        "--seed",
        str(SEED),
        "--axis",
        f"tokens-per-step={tokens_per_step}",
    ]
    with serving(*flags) as served:
        streamed = [joined(chunks) for chunks in asyncio.run(ask_all(served))]
        assert streamed == expected
        for i in range(0, COUNT, 7):
            headers = {"Content-Type": "application/json", "X-Request-Index": str(i)}
            whole = served.ask("POST", "/v1/completions", bodies[i], headers).json()
            (choice,) = whole["choices"]
            got = choice["token_ids"], choice["text"], choice["finish_reason"]
            assert got == expected[i]
            assert choice["prompt_token_ids"] == bodies[i]["prompt"]
            assert whole["usage"] == {
                "prompt_tokens": len(bodies[i]["prompt"]),
                "completion_tokens": len(expected[i][0]),
                "total_tokens": len(bodies[i]["prompt"]) + len(expected[i][0]),
            }


def joined(chunks: list[Any]) -> tuple[list[int], str, str]:
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert [bool(each["finish_reason"]) for each in choices] == [False] * (len(choices) - 1) + [
        True
    ]
    tokens = [token for each in choices for token in each["token_ids"]]
    return tokens, "".join(each["text"] for each in choices), choices[-1]["finish_reason"]
