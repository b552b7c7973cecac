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


SEGMENTS = {
    "segment_counts": [1, 2, 1],
    "segment_streams": [0, 2**32, 1, 2],
    "segment_lens": [3, 4, 1, 2],
}

CHANGES = {
    "prompt_lens": {"prompt_lens": [3, 5, 3]},
    "output_lens": {"output_lens": [4, 2, 9]},
    "arrival_seconds": {"arrival_seconds": [0.0, 0.5, 0.75]},
    "max_concurrency": {"max_concurrency": 2},
    "num_accepted": {"num_accepted": [1, 2]},
    "token_seed": {"token_seed": 12},
    "stop_token_ids": {"stop_token_ids": (2,)},
    "retain": {"retain": "finish"},
    "priorities": {"priorities": [0, 1, 0]},
    "previous_turn": {"previous_turn": [-1, 0, -1]},
    "segment_counts": SEGMENTS,
    "segment_streams": SEGMENTS | {"segment_streams": [0, 2**32, 1, 3]},
    "segment_lens": SEGMENTS | {"segment_lens": [3, 3, 2, 2]},
    "min_tokens": {"min_tokens": 1},
    "ignore_eos": {"ignore_eos": False},
    "stop": {"stop": ("end",)},
}


def test_every_content_field_changes_the_hash_and_the_others_do_not():
    hashes = {schedule(**changes).sha256 for changes in CHANGES.values()}
    assert len(hashes | {schedule().sha256}) == len(CHANGES) + 1
    assert schedule(name="other", bad_rows=4).sha256 == schedule().sha256
    named = {field.name for field in dataclasses.fields(Schedule)}
    assert named == set(CHANGES) | {"name", "bad_rows", "sha256", "_segment_starts"}


def test_a_field_that_says_what_is_so_without_it_does_not_change_the_hash():
    """Hashes from before there were such fields must hold; the catalogue's are literals."""
    plain = {
        "priorities": [0, 0, 0],
        "previous_turn": [-1, -1, -1],
        "segment_counts": [1, 1, 1],
        "segment_streams": [0, 1, 2],
        "segment_lens": [3, 5, 2],
        "min_tokens": 0,
        "ignore_eos": True,
        "stop": [],
    }
    made = schedule(**plain)
    assert made.sha256 == schedule().sha256
    for name in list(plain)[:5]:
        assert len(getattr(made, name)) == 0


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
        ({"priorities": [1, 2]}, "of one length"),
        ({"priorities": [2**31, 0, 0]}, "do not fit int32"),
        ({"previous_turn": [-1, 1, -1]}, "previous_turn must be an earlier"),
        ({"previous_turn": [-1, 2, -1]}, "previous_turn must be an earlier"),
        ({"previous_turn": [-1, -2, -1]}, "previous_turn must be an earlier"),
        ({"previous_turn": [-1, 0]}, "of one length"),
        (SEGMENTS | {"segment_counts": [1, 2]}, "of one length"),
        (SEGMENTS | {"segment_counts": []}, "segment_counts must be 1 or more"),
        (SEGMENTS | {"segment_counts": [0, 3, 1]}, "segment_counts must be 1 or more"),
        (SEGMENTS | {"segment_counts": [1, 2, 2]}, "as many as are counted"),
        (SEGMENTS | {"segment_lens": [3, 5, 2]}, "as many as are counted"),
        (SEGMENTS | {"segment_streams": [0, -1, 1, 2]}, "segment_streams must be 0"),
        (SEGMENTS | {"segment_lens": [3, 5, 0, 2]}, "segment_lens 1 or more"),
        (SEGMENTS | {"segment_lens": [3, 3, 1, 2]}, "segment_lens must sum to prompt_lens"),
        ({"min_tokens": -1}, "min_tokens"),
        ({"stop": ("",)}, "at least one character"),
        ({"stop": ("a", 3)}, "stop must be strings"),
        ({"stop": "end"}, "not one text"),
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


@given(seed=st.integers(0, 2**63 - 1), i=st.integers(0, 2), vocab_size=st.integers(1, 2**31 - 1))
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


def tokens(made, i, vocab_size=50257):
    return made.prompt_token_ids(i, vocab_size).tolist()


def test_a_prompt_is_its_segments_one_after_the_other():
    made = schedule(
        prompt_lens=[3, 9, 4],
        segment_counts=[1, 3, 1],
        segment_streams=[0, 2**32 + 7, 1, 2**32 + 7, 2**32 + 7],
        segment_lens=[3, 4, 1, 4, 4],
    )
    assert made.prompt_segments(1) == [(2**32 + 7, 4), (1, 1), (2**32 + 7, 4)]
    shared, own = tokens(made, 2), tokens(schedule(prompt_lens=[1, 1, 1]), 1)
    assert tokens(made, 1) == shared + own + shared
    assert tokens(made, 0) == tokens(schedule(), 0)
    stream = splitmix64(finalise(finalise(made.token_seed) ^ 2**32 + 7), 4)
    assert shared == [(value >> 32) * 50257 >> 32 for value in stream]


@st.composite
def schedules(draw):
    """Any schedule with turns, priorities and segments."""
    n = draw(st.integers(1, 8))
    segments = draw(
        st.lists(
            st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40)), min_size=1, max_size=4),
            min_size=n,
            max_size=n,
        )
    )
    previous = [draw(st.integers(-1, i - 1)) for i in range(n)]
    gaps = draw(st.lists(st.floats(0, 10), min_size=n, max_size=n))
    return schedule(
        prompt_lens=[sum(length for _, length in each) for each in segments],
        output_lens=draw(st.lists(st.integers(1, 9), min_size=n, max_size=n)),
        arrival_seconds=np.cumsum(gaps),
        priorities=draw(st.lists(st.integers(-2, 2), min_size=n, max_size=n)),
        previous_turn=previous,
        segment_counts=[len(each) for each in segments],
        segment_streams=[2**32 + stream for each in segments for stream, _ in each],
        segment_lens=[length for each in segments for _, length in each],
    )


@given(made=schedules(), n=st.integers(1, 8))
def test_the_head_of_any_schedule_has_the_same_requests(made, n):
    head = made.head(n)
    kept = min(n, made.num_requests)
    assert head.num_requests == kept
    for i in range(kept):
        assert head.prompt_segments(i) == made.prompt_segments(i)
        assert tokens(head, i) == tokens(made, i)
    for name in ("priorities", "previous_turn"):
        whole = getattr(made, name).tolist() or [0 if name == "priorities" else -1] * kept
        cut = getattr(head, name).tolist() or [0 if name == "priorities" else -1] * kept
        assert cut == whole[:kept]
    assert made.head(kept).head(1).sha256 == made.head(1).sha256


@given(made=schedules())
def test_prompts_share_what_their_segments_share(made):
    """Equal segments give equal tokens; from where they part, tokens differ."""
    for i in range(made.num_requests):
        for j in range(i):
            common = 0
            for one, other in zip(made.prompt_segments(i), made.prompt_segments(j), strict=False):
                common += min(one[1], other[1]) if one[0] == other[0] else 0
                if one != other:
                    break
            a, b = tokens(made, i, 2**30), tokens(made, j, 2**30)
            assert a[:common] == b[:common]
            assert a[common : common + 1] != b[common : common + 1] or len(a) == len(b) == common
