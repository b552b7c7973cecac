"""What SGLang's host path takes of a configuration, before there is an SGLang."""

from dataclasses import replace

import pytest

from engines.protocol import ContradictionError, EngineConfig
from engines.registry import ENGINES
from engines.sglang.dialect import NUMBER_DIGITS, next_rid, pool_tokens

ASKED = EngineConfig(max_num_seqs=4, max_model_len=100, device="", device_profile="")
ASKED = replace(ASKED, representation="")


def complete(**changes: object) -> EngineConfig:
    return ENGINES.load("sglang-hostpath").complete(replace(ASKED, **changes))


def test_nothing_named_is_the_null_device():
    assert complete() == replace(ASKED, device="null")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"device": "modelled"}, "sglang-hostpath has null"),
        ({"output_processing": "thread"}, "has inline, overlapped"),
        ({"setup": "shipped"}, "--axis setup=shipped: sglang-hostpath has lean, served"),
        ({"detokenizer": "decode_stream"}, "--axis detokenizer=.* has none, batch_decode"),
        ({"representation": "list_of_lists"}, "leave it out"),
        (
            {"features": "samples:2"},
            "--axis features=samples:2: must be none or, .* stop, stop-token and grammar$",
        ),
        ({"max_num_seqs": 0}, "must be at least 1"),
        ({"num_gpu_blocks_override": 107}, "a request has up to 100"),
        ({"scheduling_policy": "newest"}, "newest"),
    ],
)
def test_what_it_does_not_have_is_refused(changes, why):
    with pytest.raises(ValueError, match=why) as caught:
        complete(**changes)
    assert "\n" not in str(caught.value)


def test_several_tokens_per_step_contradict_it():
    with pytest.raises(ContradictionError, match="does not speculate"):
        complete(num_accepted=(1, 2))


@pytest.mark.parametrize(
    "asked", [{"output_processing": "overlapped"}, {"enable_prefix_caching": True}]
)
def test_served_is_as_the_release_ships(asked):
    with pytest.raises(ContradictionError, match=r"--axis setup=served .* the release decides"):
        complete(setup="served", **asked)


def test_what_a_request_is_called_is_new_each_time_and_begins_no_other():
    rids = {}
    for number in (1, 10, 1, 10_000, 10, 1):
        rids.setdefault(number, [])
        rids[number].append(next_rid(number, rids[number][-1] if rids[number] else None))
    found = [each for those in rids.values() for each in those]
    assert len(set(found)) == 6
    assert not [a for a in found for b in found if a != b and b.startswith(a)]
    assert {int(each[:NUMBER_DIGITS]) for each in rids[10]} == {10}


def test_the_pool_is_what_was_asked_for_or_outlasts_what_the_radix_cache_keeps():
    assert pool_tokens(replace(ASKED, num_gpu_blocks_override=500)) == 500
    assert pool_tokens(ASKED) > 5 * ASKED.max_num_seqs * ASKED.max_model_len


def test_what_has_threads_at_sockets_does_not_outlive_a_fork():
    traits = ENGINES.load("sglang-hostpath").traits
    assert traits(complete()).outlives_fork
    assert not traits(complete(detokenizer="batch_decode")).outlives_fork
    assert not traits(complete(setup="served")).outlives_fork
    assert not traits(complete(features="stop")).outlives_fork
    assert traits(complete(features="stop-token")).outlives_fork


def test_a_way_of_the_gates_has_a_pool_that_is_small_for_any_workload_and_room_for_each_request():
    traits = ENGINES.load("sglang-hostpath").traits
    for length in (100, 4_000):
        asked = complete(max_num_seqs=64, max_model_len=length)
        ways = traits(asked).ways
        pools = [each["num_gpu_blocks_override"] for each in ways if len(each) == 2]
        assert all(length < pool < 32 * length for pool in pools)
        assert len(pools) == 1
