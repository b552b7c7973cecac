"""The same requests and seed give the same tokens, whatever carries them."""

from dataclasses import replace
from functools import partial
from itertools import product
from random import Random
from typing import Any

import pytest
from examples import examples, some
from harness_free import (
    MODES,
    SEVERAL_TOKENS,
    Request,
    Run,
    are_alike,
    check_against_oracle,
    draw_config,
    draw_requests,
    goes_together,
    null_config,
    oracle,
    run,
    variants,
    wishes,
    with_text,
)
from hypothesis import given
from hypothesis import strategies as st

from engines.builtin.engine import Engine
from engines.builtin.registries import TRANSPORTS, WIRES
from engines.protocol import EngineConfig, FinishReason

VARIANTS = list(variants())
DETOKENIZERS = {False: ["decode_stream", "byte_table"], True: ["byte_table"]}
"""By whether a delivery takes the batch at once."""
STREAMS = ["none", "collector"]
randoms = st.randoms(use_true_random=False)


def run_all(config: EngineConfig, requests: list[Request], choose=lambda delivery: {}) -> Run:
    """What became of the requests, the same in every variant."""
    runs = []
    for representation, delivery in VARIANTS:
        parts = {"representation": representation, "delivery": delivery} | choose(delivery)
        runs.append(run(Engine(replace(config, **parts)), requests))
    assert all(are_alike(other, runs[0], config.output_processing) for other in runs[1:])
    return runs[0]


def choose_text_parts(random: Random, delivery: str) -> dict[str, str]:
    return {
        "detokenizer": random.choice(DETOKENIZERS[delivery == "columnar"]),
        "request_streams": random.choice(STREAMS),
    }


@examples(20)
@given(randoms)
def test_every_variant_gives_the_oracles_tokens_and_one_order(random):
    config = draw_config(random)
    requests = draw_requests(random, config)
    for mode in MODES:
        first = run_all(replace(config, output_processing=mode), requests)
        check_against_oracle(config, requests, first)


def check_texts(random: Random) -> None:
    config = with_text(random, draw_config(random))
    requests = [wishes(random, request) for request in draw_requests(random, config)]
    for mode in MODES:
        choose = partial(choose_text_parts, random)
        first = run_all(replace(config, output_processing=mode), requests, choose)
        for request in requests:
            tokens, reason = oracle(config, request)
            if first.reasons[request.index] is FinishReason.ABORT:
                continue
            got = first.tokens[request.index]
            if not request.stop:
                assert (got, first.reasons[request.index]) == (tokens, reason)
            assert got == tokens[: len(got)]
            if not request.min_tokens:
                assert not any(stop in first.texts[request.index] for stop in request.stop)


@pytest.mark.slow
@examples(8)
@given(randoms)
def test_every_variant_gives_one_text_and_ends_alike(random):
    check_texts(random)


@pytest.mark.slow
@examples(60)
@given(randoms)
def test_every_variant_gives_one_text_in_thousands_of_runs(random):
    check_texts(random)


@examples(20)
@given(randoms)
def test_modes_agree_on_the_order_where_nobody_waits(random):
    config = replace(
        draw_config(random),
        max_num_seqs=16,
        max_num_batched_tokens=10_000,
        num_gpu_blocks_override=0,
    )
    requests = draw_requests(random, config, aborts=False)
    runs = [run(Engine(replace(config, output_processing=mode)), requests) for mode in MODES]
    check_against_oracle(config, requests, runs[0])
    assert all(other == runs[0] for other in runs[1:])


@pytest.mark.slow
def test_drawn_requests_end_in_every_way_wait_share_and_are_preempted():
    reasons, waits, preemptions, hits = set(), 0, 0, 0
    for seed in range(150):
        random = Random(seed)
        config = draw_config(random)
        requests = draw_requests(random, config)
        engine = Engine(config)
        reasons |= set(run(engine, requests).reasons.values())
        waits += len(requests) > config.max_num_seqs
        stats = engine.scheduler_stats()
        preemptions += stats["num_preemptions"]
        hits += stats["prefix_cache_hits"]
    assert len(reasons) == 3
    assert waits > 5
    assert preemptions > 5
    assert hits > 100


WAYS = [
    {"worker": worker, "tensor_parallel_size": ranks, "wire": f"{wire}+{transport}"}
    for nth, (wire, transport) in enumerate(product(WIRES.names(), TRANSPORTS.names()))
    for worker, ranks in [[("process", 1), ("driver", 2), ("process", 2)][nth % 3]]
]
"""Each wire by each transport, in turn to a rank, to two, and from the driver to its other."""


def way_goes_with(way: dict[str, Any], mode: str) -> bool:
    return goes_together(null_config(output_processing=mode, **way))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "nth", "mode"),
    [
        pytest.param(
            variant,
            nth,
            MODES[nth % len(MODES)],
            marks=() if variant in (VARIANTS[0], VARIANTS[-1]) else pytest.mark.slow,
        )
        for nth, variant in enumerate(some(VARIANTS))
    ],
)
def test_a_worker_process_changes_nothing(variant, nth, mode):
    random = Random(7)
    config = replace(
        draw_config(random),
        max_num_seqs=5,
        max_num_batched_tokens=24,
        **SEVERAL_TOKENS[nth % 2],
        block_size=4,
        num_gpu_blocks_override=30,
        enable_prefix_caching=True,
        vocab_size=60,
        representation=variant[0],
        delivery=variant[1],
        output_processing=mode,
    )
    ways = [way for way in WAYS if way_goes_with(way, mode)]
    here, there = Engine(config), Engine(replace(config, **ways[nth % len(ways)]))
    try:
        for first_index in range(0, 400, 100):
            requests = draw_requests(random, config, first_index)
            got = run(there, requests)
            assert are_alike(got, run(here, requests), mode)
            check_against_oracle(config, requests, got)
    finally:
        there.shutdown()
