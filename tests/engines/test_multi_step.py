"""Several passes from one scheduling to the next: what is scheduled, and what it comes to."""

from dataclasses import replace

import numpy as np
import pytest
from harness_free import MODES, null_config
from msgspec.structs import replace as changed
from small import CELL

from engines.builtin.engine import Engine
from engines.protocol import EngineConfig, SamplingParams
from harness.experiment.plan import beside_baseline, default_decider

PLAIN = null_config(max_num_seqs=4, max_model_len=200, vocab_size=60)


def serve(engine: Engine, *outputs: int, stop_token_ids: tuple[int, ...] = ()) -> list[list[int]]:
    """What each call of `Engine.step` brought: tokens of each request that got some."""
    for index, length in enumerate(outputs):
        params = SamplingParams(length, stop_token_ids=stop_token_ids)
        engine.add_request(index, np.arange(5, dtype=np.int32), params)
    brought = []
    while engine.has_unfinished_requests():
        brought += [each.num_tokens.tolist() for each in engine.step().delivered]
    return brought


def several(config: EngineConfig, count: int = 4) -> Engine:
    return Engine(replace(config, num_scheduler_steps=count))


def test_a_prompt_takes_one_pass_and_then_each_goes_on_to_its_last_token():
    engine = several(PLAIN)
    assert serve(engine, 10, 3, 1) == [[1, 1, 1], [4, 2], [4], [1]]
    assert engine.scheduler_stats()["num_surplus_tokens"] == 0


def test_who_comes_meanwhile_waits_for_the_passes_under_way():
    engine = several(PLAIN, 8)
    engine.add_request(0, np.arange(5, dtype=np.int32), SamplingParams(20))
    brought = []
    for number in range(4):
        if number == 2:
            engine.add_request(1, np.arange(5, dtype=np.int32), SamplingParams(20))
        brought += [each.num_tokens.tolist() for each in engine.step().delivered]
    assert brought == [[1], [8], [1, 1], [8, 8]]


def preemptions_of_single_passes(config: EngineConfig) -> int:
    engine = Engine(config)
    serve(engine, 13, 13)
    return engine.scheduler_stats()["num_preemptions"]


def test_where_blocks_are_short_a_step_is_one_pass():
    """Nobody is preempted for tokens that are only looked forward to."""
    config = replace(PLAIN, block_size=4, num_gpu_blocks_override=9, max_model_len=20)
    engine = several(config, 8)
    brought = serve(engine, 13, 13)
    assert [1, 1] in brought[1:]
    assert engine.scheduler_stats()["num_preemptions"] == preemptions_of_single_passes(config)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_sampled_behind_a_stop_is_surplus_and_given_to_nobody(mode):
    stops = tuple(range(0, 60, 7))
    one, many = (
        Engine(replace(PLAIN, num_scheduler_steps=count, output_processing=mode))
        for count in (1, 8)
    )
    for engine in (one, many):
        serve(engine, 40, 40, 40, 40, stop_token_ids=stops)
        engine.shutdown()
    tokens = [[engine.output_token_ids(i).tolist() for i in range(4)] for engine in (one, many)]
    assert tokens[0] == tokens[1]
    surplus = [engine.scheduler_stats()["num_surplus_tokens"] for engine in (one, many)]
    assert surplus[1] > surplus[0]


@pytest.mark.parametrize("shape", ["lists:2", "arrays:2"])
def test_log_probabilities_are_those_of_single_passes(shape):
    config = replace(PLAIN, logprobs=shape)
    one, many = Engine(config), several(config, 3)
    for engine in (one, many):
        serve(engine, 10, 3, 7)
    for index in range(3):
        assert list(one.output_logprobs(index)) == list(many.output_logprobs(index))


def test_drafts_and_several_passes_are_refused_together():
    with pytest.raises(ValueError, match="leave one of the two out"):
        Engine(replace(PLAIN, num_scheduler_steps=2, num_accepted=(1, 2)))
    with pytest.raises(ValueError, match="must be at least 1"):
        several(PLAIN, 0)


def test_steps_that_are_not_as_much_work_have_no_ratio():
    alike = [CELL, changed(CELL, gc="disabled")]
    other = [CELL, changed(CELL, num_scheduler_steps=4)]
    assert default_decider(alike) == ["host_time_per_step"]
    assert default_decider(other) == ["request_throughput"]
    assert beside_baseline(alike, [0], lambda cell: True)
    assert not beside_baseline(other, [0], lambda cell: True)
