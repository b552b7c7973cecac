"""The whole engine with all of output processing on: one outcome, however it is run."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from delivery_runs import MOST_TOKENS, Asked, config_of, expected, variants
from examples import examples
from harness_free import MODES
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from engines.builtin.engine import Engine
from engines.protocol import EngineConfig, FinishReason, SamplingParams
from engines.vocabulary import SHIPPED_TOKENIZER, read_vocabulary

LIBRARY = Tokenizer.from_file(str(SHIPPED_TOKENIZER))
SIZE, EOS = read_vocabulary("")


def sampled(config: EngineConfig, count: int) -> list[list[int]]:
    """The scripted tokens of requests that nothing stops."""
    engine = Engine(replace(config, detokenizer="none", logprobs="none", request_streams="none"))
    for index in range(count):
        engine.add_request(index, np.zeros(3, np.int32), SamplingParams(MOST_TOKENS))
    while engine.has_unfinished_requests():
        engine.step()
    return [engine.output_token_ids(index).tolist() for index in range(count)]


def draw_params(random: Random) -> SamplingParams:
    most = random.randint(1, MOST_TOKENS)
    return SamplingParams(
        most,
        random.choice([0, 0, random.randint(0, most)]),
        stop_token_ids=tuple(random.sample(range(SIZE), random.choice([0, 300]))),
        stop=random.choice([(), ("e",), ("in", "\n", "é"), ("st",)]),
        include_stop_str_in_output=random.random() < 0.3,
    )


def run(config: EngineConfig, asked: Sequence[Asked]) -> dict[int, tuple[Any, ...]]:
    """Tokens, reason, text and log-probabilities of each; what streams say must agree."""
    engine = Engine(config)
    outcomes, streamed = {}, {each.index: "" for each in asked}
    for each in asked:
        engine.add_request(each.index, np.arange(9, dtype=np.int32), each.params)
    try:
        while engine.has_unfinished_requests():
            for delivered in engine.step().delivered:
                made = delivered.outputs
                if config.request_streams != "none":
                    assert not made
                    made = [engine.request_stream(i).get_nowait() for i in delivered.request_index]
                # A call that brings two steps has put both of a request's outputs in its stream.
                for each in filter(None, made):
                    streamed[each.request_index] += getattr(each.outputs[0], "text", "")
                ended = zip(delivered.finished.tolist(), delivered.finish_reasons, strict=True)
                for index, reason in ended:
                    text = engine.output_text(index) if config.detokenizer != "none" else None
                    logprobs = engine.output_logprobs(index) if config.logprobs != "none" else ()
                    tokens = engine.output_token_ids(index).tolist()
                    outcomes[index] = tokens, FinishReason(reason), text, list(logprobs)
                    assert len(logprobs) in (0, len(tokens))
                    has_outputs = config.delivery != "columnar" or (
                        config.request_streams != "none"
                    )
                    assert streamed[index] == (text or "") or not has_outputs
        if config.num_gpu_blocks_override:
            assert engine.scheduler_stats()["num_preemptions"] > 0
    finally:
        engine.shutdown()
    return outcomes


def ask(random: Random, config: EngineConfig) -> list[Asked]:
    tokens = sampled(config, 8)
    return [Asked(index, own, draw_params(random)) for index, own in enumerate(tokens)]


def check(asked: Sequence[Asked], outcomes: dict[int, tuple[Any, ...]]) -> None:
    for each in asked:
        assert outcomes[each.index][:3] == expected(each, LIBRARY, EOS)[:3]


@examples(4)
@given(
    st.integers(0, 2**32).map(Random),
    st.sampled_from(["decode_stream", "byte_table"]),
    st.sampled_from([(1,), (1, 2, 4)]),
)
def test_every_representation_delivery_and_mode_comes_to_the_same(random, detokenizer, accepted):
    fields = {
        "detokenizer": detokenizer,
        "num_accepted": accepted,
        "vocab_size": SIZE,
        "eos_token_id": EOS,
        "seed": random.randrange(2**32),
        "logprobs": "arrays:2",
    }
    asked = ask(random, config_of(**fields))
    outcomes = []
    for config in variants(**fields):
        for mode in MODES:
            outcomes.append(run(replace(config, output_processing=mode), asked))
    check(asked, outcomes[0])
    assert all(other == outcomes[0] for other in outcomes[1:])
    first = config_of(**fields | {"detokenizer": "decode_stream", "logprobs": "lists:2"})
    assert run(first, asked) == outcomes[0], "the shape changes nothing"
    assert run(replace(first, request_streams="collector"), asked) == outcomes[0]
    columns = {"delivery": "columnar", "representation": "flat_arrays"}
    columns = config_of(**fields | columns | {"detokenizer": "byte_table"})
    for mode in MODES:
        config = replace(columns, output_processing=mode, request_streams="collector")
        assert run(config, asked) == outcomes[0]


def test_a_preemption_changes_nothing():
    """Few blocks: rows are given up and taken again in the middle of texts."""
    random = Random(3)
    fields = {"vocab_size": SIZE, "eos_token_id": EOS, "logprobs": "arrays:1"}
    config = config_of(
        block_size=4,
        num_accepted=(1, 3),
        num_gpu_blocks_override=14,
        max_num_seqs=4,
        max_model_len=50,
        **fields,
    )
    for _ in range(4):
        config = replace(config, seed=random.randrange(2**32), detokenizer="byte_table")
        asked = ask(random, replace(config, num_gpu_blocks_override=0))
        asked = [each._replace(params=replace(each.params, max_tokens=24)) for each in asked]
        ways = [
            replace(config, detokenizer="decode_stream", request_streams="collector"),
            replace(config, delivery="columnar", representation="tensor"),
            replace(
                config,
                delivery="columnar",
                representation="padded_arrays",
                request_streams="collector",
            ),
            replace(config, representation="int_or_list", output_processing="overlapped"),
        ]
        outcomes = [run(way, asked) for way in ways]
        check(asked, outcomes[0])
        assert all(other == outcomes[0] for other in outcomes[1:])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("logprobs", "delivery"), [("lists:2", "per_request"), ("arrays:2", "columnar")]
)
def test_log_probabilities_cross_to_a_worker_process_and_back(logprobs, delivery):
    random = Random(8)
    config = config_of(
        vocab_size=SIZE,
        eos_token_id=EOS,
        logprobs=logprobs,
        delivery=delivery,
        representation="flat_arrays",
        detokenizer="byte_table",
        num_accepted=(1, 2),
    )
    asked = ask(random, config)
    assert run(replace(config, worker="process"), asked) == run(config, asked)


def test_a_request_that_can_never_stop_so_is_refused_when_it_comes():
    engine = Engine(config_of())
    with pytest.raises(ValueError, match="request 3: stop strings"):
        engine.add_request(3, np.zeros(2, np.int32), SamplingParams(4, stop=("x",)))
    assert not engine.has_unfinished_requests()
