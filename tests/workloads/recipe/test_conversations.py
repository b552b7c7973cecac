"""Turns of conversations and shared prefixes: what prompts have in common, and who waits."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.recipe.arrivals import AllAtOnce, ClosedLoop, Poisson
from workloads.recipe.conversations import SharedPrefix, Turns
from workloads.recipe.lengths import Fixed, Uniform, parse_lengths
from workloads.workload import Workload

BASE = Workload(
    name="base",
    num_requests=40,
    prompt_lens=Uniform(1, 50),
    output_lens=Uniform(1, 30),
    arrivals=Poisson(5),
)

turns = st.builds(
    Turns,
    st.one_of(st.integers(1, 9), st.builds(Fixed, st.integers(1, 9)), st.just(Uniform(1, 6))),
    st.floats(0, 10),
)
workloads = st.builds(
    lambda **changes: msgspec.structs.replace(BASE, **changes),
    num_requests=st.integers(1, 40),
    arrivals=st.one_of(st.just(AllAtOnce()), st.just(Poisson(5)), st.just(ClosedLoop(3))),
    turns=turns,
    shared_prefix=st.none() | st.builds(SharedPrefix, st.integers(1, 3), st.integers(1, 40)),
)


def previous_turns(made):
    return made.previous_turn.tolist() or [-1] * made.num_requests


@given(workload=workloads, seed=st.integers(0, 2**32))
def test_a_turns_prompt_goes_on_from_the_one_before_and_its_answer(workload, seed):
    made = workload.realise(seed)
    previous = previous_turns(made)
    assert made.num_requests == workload.num_requests
    assert (np.diff(made.arrival_seconds) >= 0).all()
    for i, before in enumerate(previous):
        if before < 0:
            continue
        assert before < i
        grown = made.prompt_lens[before] + made.output_lens[before]
        assert made.prompt_lens[i] > grown
        assert made.prompt_lens[i] <= grown + 50
        assert made.arrival_seconds[i] == pytest.approx(
            made.arrival_seconds[before] + workload.turns.think_seconds
        )
        prompt = made.prompt_token_ids(i).tolist()
        assert prompt[: made.prompt_lens[before]] == made.prompt_token_ids(before).tolist()
    waited_for = [before for before in previous if before >= 0]
    assert len(set(waited_for)) == len(waited_for), "one turn follows another"


@given(workload=workloads, seed=st.integers(0, 2**32))
def test_conversations_have_as_many_turns_as_were_drawn(workload, seed):
    made = workload.realise(seed)
    turn = [1] * made.num_requests
    ended = set(range(made.num_requests))
    for i, before in enumerate(previous_turns(made)):
        if before >= 0:
            turn[i] = turn[before] + 1
            ended.discard(before)
    lengths = sorted(turn[i] for i in ended)
    count = workload.turns.count
    low, high = {int: (count, count), Fixed: (getattr(count, "value", 0),) * 2, Uniform: (1, 6)}[
        type(count)
    ]
    assert max(lengths) <= high
    assert sum(length < low for length in lengths) <= 1, "the last one may be cut"


def test_user_tokens_outputs_and_beginnings_are_drawn_as_without_turns():
    workload = msgspec.structs.replace(BASE, turns=Turns(4, 1.0))
    plain, made = BASE.realise(3), workload.realise(3)
    assert sorted(made.output_lens.tolist()) == sorted(plain.output_lens.tolist())
    first = made.previous_turn < 0
    assert made.arrival_seconds[first].tolist() == plain.arrival_seconds[:10].tolist()
    new = made.prompt_lens.astype(int)
    waits = ~first
    before = made.previous_turn[waits]
    new[waits] -= made.prompt_lens[before] + made.output_lens[before]
    assert sorted(new.tolist()) == sorted(plain.prompt_lens.tolist())


def test_one_turn_each_is_no_conversation():
    workload = msgspec.structs.replace(BASE, turns=Turns(1))
    assert workload.realise(0).sha256 == BASE.realise(0).sha256


@given(groups=st.integers(1, 4), tokens=st.integers(1, 60), seed=st.integers(0, 2**32))
def test_prompts_of_a_group_begin_alike_and_go_on_as_they_did(groups, tokens, seed):
    workload = msgspec.structs.replace(BASE, shared_prefix=SharedPrefix(groups, tokens))
    plain, made = BASE.realise(seed), workload.realise(seed)
    assert (made.prompt_lens - plain.prompt_lens).tolist() == [tokens] * 40
    starts = [made.prompt_token_ids(i, 2**30)[:tokens].tobytes() for i in range(40)]
    assert len(set(starts)) <= groups
    assert len({start[:4] for start in starts}) == len(set(starts))
    for i in (0, 7, 39):
        assert made.prompt_token_ids(i)[tokens:].tolist() == plain.prompt_token_ids(i).tolist()


def test_groups_are_all_as_likely():
    workload = msgspec.structs.replace(BASE, num_requests=8000, shared_prefix=SharedPrefix(8, 4))
    made = workload.realise(0)
    counts = np.unique(made.segment_streams[::2], return_counts=True)[1]
    assert len(counts) == 8
    assert np.abs(counts / 1000 - 1).max() < 0.15


def test_the_turns_of_a_conversation_share_their_prefix():
    workload = msgspec.structs.replace(
        BASE, turns=Turns(Uniform(1, 6)), shared_prefix=SharedPrefix(3, 16)
    )
    made = workload.realise(5)
    for i, before in enumerate(made.previous_turn.tolist()):
        if before >= 0:
            assert made.prompt_segments(i)[0] == made.prompt_segments(before)[0]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Turns(0), "a length of 0 must be"),
        (lambda: Turns(3, -1.0), "think_seconds -1 must be"),
        (lambda: Turns(3, float("nan")), "think_seconds nan must be"),
        (lambda: SharedPrefix(0, 5), "groups 0 must be"),
        (lambda: SharedPrefix(2, 0), "tokens 0 must be"),
    ],
)
def test_what_cannot_be_is_refused(make, why):
    with pytest.raises(ValueError, match=why):
        make()


def test_a_conversation_that_grows_beyond_all_bounds_is_refused():
    workload = msgspec.structs.replace(
        BASE, turns=Turns(30), prompt_lens=parse_lengths("1000000"), num_requests=30
    )
    with pytest.raises(ValueError, match=r"grows to a prompt of 30,000,\d+ tokens.*fewer turns"):
        workload.realise(0)
