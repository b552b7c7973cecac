"""The same requests and seed give the same tokens, whatever carries them."""

from dataclasses import replace
from random import Random

import pytest
from harness_free import MODES, check_against_oracle, draw_config, draw_requests, run, variants
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.builtin.engine import Engine

VARIANTS = list(variants())
randoms = st.randoms(use_true_random=False)


@settings(max_examples=20, deadline=None)
@given(randoms)
def test_every_variant_gives_the_oracles_tokens_and_one_order(random):
    config = draw_config(random)
    requests = draw_requests(random, config)
    for mode in MODES:
        runs = []
        for representation, delivery in VARIANTS:
            engine = Engine(
                replace(
                    config,
                    representation=representation,
                    delivery=delivery,
                    output_processing=mode,
                )
            )
            runs.append(run(engine, requests))
        check_against_oracle(config, requests, runs[0])
        assert all(other == runs[0] for other in runs[1:])


@settings(max_examples=20, deadline=None)
@given(randoms)
def test_modes_agree_on_the_order_where_nobody_waits(random):
    config = replace(draw_config(random), max_num_seqs=16, max_num_batched_tokens=10_000)
    requests = draw_requests(random, config, aborts=False)
    runs = [run(Engine(replace(config, output_processing=mode)), requests) for mode in MODES]
    check_against_oracle(config, requests, runs[0])
    assert all(other == runs[0] for other in runs[1:])


def test_drawn_requests_end_in_every_way_and_wait():
    reasons, waits = set(), 0
    for seed in range(40):
        random = Random(seed)
        config = draw_config(random)
        requests = draw_requests(random, config)
        reasons |= set(run(Engine(config), requests).reasons.values())
        waits += len(requests) > config.max_num_seqs
    assert len(reasons) == 3
    assert waits > 5


@pytest.mark.parametrize(
    ("variant", "mode"),
    [
        pytest.param(
            variant,
            MODES[nth % len(MODES)],
            marks=() if nth in (0, len(VARIANTS) - 1) else pytest.mark.slow,
        )
        for nth, variant in enumerate(VARIANTS)
    ],
)
def test_a_worker_process_changes_nothing(variant, mode):
    random = Random(7)
    config = replace(
        draw_config(random),
        max_num_seqs=5,
        max_num_batched_tokens=24,
        num_accepted=(1, 2, 4),
        vocab_size=60,
        representation=variant[0],
        delivery=variant[1],
        output_processing=mode,
    )
    here, there = Engine(config), Engine(replace(config, worker="process"))
    try:
        for first_index in range(0, 400, 100):
            requests = draw_requests(random, config, first_index)
            got = run(there, requests)
            assert got == run(here, requests)
            check_against_oracle(config, requests, got)
    finally:
        there.shutdown()
