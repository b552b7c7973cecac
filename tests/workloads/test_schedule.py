import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.schedule import Schedule


def schedule(**changes):
    fields = {
        "name": "small",
        "prompt_lens": [3, 5, 2],
        "output_lens": [4, 1, 9],
        "arrival_seconds": [0.0, 0.5, 0.5],
        "max_concurrency": 0,
        "num_accepted": [1],
        "token_seed": 11,
        "stop_token_ids": (),
        "retain": "step",
    }
    return Schedule(**(fields | changes))


CHANGES = {
    "prompt_lens": [3, 5, 3],
    "output_lens": [4, 2, 9],
    "arrival_seconds": [0.0, 0.5, 0.75],
    "max_concurrency": 2,
    "num_accepted": [1, 2],
    "token_seed": 12,
    "stop_token_ids": (2,),
    "retain": "finish",
}


def test_every_content_field_changes_the_hash_and_the_others_do_not():
    hashes = {schedule(**{name: value}).sha256 for name, value in CHANGES.items()}
    assert len(hashes | {schedule().sha256}) == len(CHANGES) + 1
    assert schedule(name="other", bad_rows=4).sha256 == schedule().sha256
    named = {field.name for field in dataclasses.fields(Schedule)}
    assert named == set(CHANGES) | {"name", "bad_rows", "sha256"}


def test_the_hash_is_of_values_not_of_how_they_were_given():
    same = schedule(
        prompt_lens=np.array([3, 5, 2], ">i8"),
        output_lens=np.array([4, 0, 1, 0, 9])[::2],
        arrival_seconds=np.array([-0.0, 0.5, 0.5]),
    )
    assert same.sha256 == schedule().sha256


def test_values_do_not_slide_between_arrays():
    one = schedule(prompt_lens=[1], output_lens=[2], arrival_seconds=[0.0])
    other = schedule(prompt_lens=[2], output_lens=[1], arrival_seconds=[0.0])
    assert one.sha256 != other.sha256


def test_arrays_are_read_only_copies():
    lens = np.array([3, 5, 2], np.int32)
    made = schedule(prompt_lens=lens)
    lens[0] = 100
    assert made.prompt_lens[0] == 3
    for name in ("prompt_lens", "output_lens", "arrival_seconds", "num_accepted"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(made, name)[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.token_seed = 3


def test_what_follows_from_the_arrays():
    made = schedule()
    assert (made.num_requests, made.max_model_len, made.total_output_tokens) == (3, 11, 14)


def test_head_keeps_everything_but_the_later_requests():
    made = schedule(num_accepted=[1, 2], retain="finish")
    head = made.head(2)
    assert head.prompt_lens.tolist() == [3, 5]
    assert head.arrival_seconds.tolist() == [0.0, 0.5]
    assert (head.retain, head.num_accepted.tolist()) == ("finish", [1, 2])
    assert head.prompt_token_ids(1).tolist() == made.prompt_token_ids(1).tolist()
    assert made.head(99).sha256 == made.sha256 != head.sha256
    with pytest.raises(ValueError, match="at least 1 request, not 0"):
        made.head(0)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"prompt_lens": [], "output_lens": [], "arrival_seconds": []}, "one-dim|at least one"),
        ({"prompt_lens": [3, 5]}, "of one length"),
        ({"prompt_lens": [[3, 5, 2]]}, "one-dimensional"),
        ({"prompt_lens": ["a", "b", "c"]}, "array of numbers"),
        ({"prompt_lens": [0, 5, 2]}, "prompt_lens must be between"),
        ({"prompt_lens": [2**40, 5, 2]}, "do not fit int32"),
        ({"prompt_lens": [1.5, 5, 2]}, "do not fit int32"),
        ({"output_lens": [4, -1, 9]}, "output_lens must be between"),
        ({"output_lens": [4, 2**25, 9]}, "output_lens must be between"),
        ({"arrival_seconds": [0, 2, 1]}, "non-decreasing"),
        ({"arrival_seconds": [-1, 2, 3]}, "non-decreasing"),
        ({"arrival_seconds": [0, float("nan"), 3]}, "finite"),
        ({"num_accepted": [0]}, "num_accepted must be 1 or more"),
        ({"num_accepted": [200]}, "do not fit int8"),
        ({"max_concurrency": -1}, "max_concurrency"),
        ({"token_seed": -1}, "token_seed"),
        ({"token_seed": 2**63}, "token_seed"),
        ({"stop_token_ids": (-1,)}, "stop_token_ids"),
        ({"retain": "never"}, "retain"),
    ],
)
def test_what_no_engine_could_replay_is_refused(changes, why):
    with pytest.raises(ValueError, match=why):
        schedule(**changes)


def splitmix64(state, n):
    """The generator as its paper gives it, in Python's integers."""
    mask, values = 2**64 - 1, []
    for _ in range(n):
        state = (state + 0x9E3779B97F4A7C15) & mask
        values.append(finalise(state))
    return values


def finalise(z):
    mask = 2**64 - 1
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


@given(
    seed=st.integers(0, 2**63 - 1),
    i=st.integers(0, 2),
    vocab_size=st.integers(1, 2**31 - 1),
)
def test_prompts_are_splitmix64_streams(seed, i, vocab_size):
    made = schedule(token_seed=seed)
    stream = splitmix64(finalise(finalise(seed) ^ i), made.prompt_lens[i])
    expected = [(value >> 32) * vocab_size >> 32 for value in stream]
    tokens = made.prompt_token_ids(i, vocab_size)
    assert tokens.dtype == np.int32
    assert tokens.tolist() == expected


def test_prompt_tokens_differ_between_requests_and_fill_the_vocabulary():
    n = 64
    made = schedule(
        prompt_lens=[2000] * n, output_lens=[1] * n, arrival_seconds=np.zeros(n), token_seed=5
    )
    tokens = np.stack([made.prompt_token_ids(i, 100) for i in range(n)])
    counts = np.bincount(tokens.ravel(), minlength=100)
    assert len(counts) == 100
    assert np.abs(counts / counts.mean() - 1).max() < 0.15
    assert len({row.tobytes() for row in tokens}) == n


def test_a_prompt_that_is_not_there_is_refused():
    with pytest.raises(IndexError, match="no request 3 among 3"):
        schedule().prompt_token_ids(3)
    with pytest.raises(IndexError):
        schedule().prompt_token_ids(-1)
