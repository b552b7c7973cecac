"""A scheduler that replays what it decided: the same run, and a sentence where it is another."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from examples import examples
from harness_free import (
    EXACT_MODES,
    Request,
    check_against_oracle,
    draw_config,
    draw_requests,
    null_config,
    run,
    variants,
    wishes,
    with_text,
)
from hypothesis import given
from hypothesis import strategies as st

from engines.builtin.engine import Engine
from engines.protocol import EngineConfig, SamplingParams

VARIANTS = list(variants())
randoms = st.randoms(use_true_random=False)


def replaying(config: EngineConfig) -> Engine:
    return Engine(replace(config, scheduler="replayed"))


def check_replay(random: Random, config: EngineConfig, requests: Sequence[Request]) -> None:
    representation, delivery = random.choice(VARIANTS)
    config = replace(
        config,
        representation=representation,
        delivery=delivery,
        output_processing=random.choice(EXACT_MODES),
    )
    live, replayed = Engine(config), replaying(config)
    wanted = run(live, requests)
    replayed.rehearse(lambda: run(replayed, requests))
    before = replayed.scheduler_stats()
    got = run(replayed, requests)
    assert got == wanted
    after = replayed.scheduler_stats()
    assert {name: after[name] - before[name] for name in after} == live.scheduler_stats()
    # What comes behind the recorded run is scheduled as by any other.
    others = draw_requests(random, config, first_index=100)
    check_against_oracle(config, others, run(replayed, others))


@examples(60)
@given(randoms)
def test_a_replayed_run_is_the_one_that_was_scheduled(random):
    config = draw_config(random)
    check_replay(random, config, draw_requests(random, config))


@examples(20)
@given(randoms)
def test_and_one_that_stop_strings_end_while_the_next_step_is_under_way(random):
    config = replace(with_text(random, draw_config(random)), logprobs="none")
    requests = [wishes(random, request) for request in draw_requests(random, config)]
    check_replay(random, config, requests)


def serve(engine: Engine, *outputs: int, first_index: int = 0) -> None:
    for index, length in enumerate(outputs, first_index):
        engine.add_request(index, np.arange(5, dtype=np.int32), SamplingParams(length))
    while engine.has_unfinished_requests():
        engine.step()


@pytest.mark.parametrize("others", [(10, 10, 10), (4, 3), (3, 4), (4, 3, 10, 2)])
def test_another_run_than_the_recorded_one_is_refused(others):
    engine = replaying(null_config(max_num_seqs=2))
    engine.rehearse(lambda: serve(engine, 4, 3, 10))
    with pytest.raises(ValueError, match="another run than the recorded one"):
        serve(engine, *others)


def test_a_run_that_is_broken_off_leaves_the_engine_to_schedule_again():
    engine = replaying(null_config(max_num_seqs=2))
    engine.rehearse(lambda: serve(engine, 4, 3, 10))
    for index, length in enumerate((4, 3, 10)):
        engine.add_request(index, np.arange(5, dtype=np.int32), SamplingParams(length))
    engine.step()
    for index in range(3):
        engine.abort_request(index)
    serve(engine, 7, 2, first_index=10)
    assert [len(engine.output_token_ids(index)) for index in (10, 11)] == [7, 2]


def test_where_outputs_are_ready_at_any_time_it_is_refused():
    with pytest.raises(ValueError, match="use inline or overlapped"):
        replaying(null_config(output_processing="thread"))
