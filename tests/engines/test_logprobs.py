"""Log-probabilities from the device to a request's own: values, shapes, and what they may alias."""

import pickle

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from engines.builtin.device import DeviceBatch
from engines.builtin.device.scripted_logprobs import scripted_logprobs
from engines.builtin.device.scripted_sampler import ScriptedSampler
from engines.builtin.logprobs import DeviceLogprobs, first_positions, load_logprobs, parse_logprobs
from engines.builtin.logprobs.arrays import ArrayLogprobs
from engines.builtin.logprobs.lists import Lists
from engines.protocol import EngineConfig

both = pytest.mark.parametrize("kind", [Lists, ArrayLogprobs])
every_count = st.lists(st.integers(0, 3), max_size=6)


def config(num_logprobs: int = 2, **fields) -> EngineConfig:
    return EngineConfig(4, 64, logprobs=f"arrays:{num_logprobs}", vocab_size=1000, **fields)


def batch(*requests: tuple[int, int]) -> DeviceBatch:
    """Of (request, position) pairs."""
    indices, positions = (np.array(each, np.int64) for each in zip(*requests, strict=True))
    ones = np.ones(len(indices), np.int32)
    return DeviceBatch(indices, positions, ones, positions + 1, None, None)


def draw(num_rows: int, width: int, num_logprobs: int) -> DeviceLogprobs:
    shape = (num_rows, width, num_logprobs + 1)
    values = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    return DeviceLogprobs(values, values.astype(np.float32) / 8, values[:, :, 0] + 500)


def test_scripted_values_depend_on_seed_request_and_position_alone():
    device = scripted_logprobs(config(3, seed=5))
    tokens = np.array([[7], [8], [9]], np.int32)
    together = device.draw(batch((3, 4), (5, 0), (3, 5)), tokens)
    alone = device.draw(batch((3, 5)), tokens[2:])
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(one[2:], other)
    other_seed = scripted_logprobs(config(3, seed=6)).draw(batch((3, 5)), tokens[2:])
    assert not np.array_equal(alone.logprobs, other_seed.logprobs)
    assert len(np.unique(together.logprobs)) == together.logprobs.size


def test_scripted_values_are_the_same_whether_a_step_yields_one_token_or_three():
    tokens = np.array([[7, 8, 9]], np.int32)
    three = scripted_logprobs(config(2, num_accepted=(3,))).draw(batch((1, 10)), tokens)
    for nth in range(3):
        one = scripted_logprobs(config(2)).draw(batch((1, 10 + nth)), tokens[:, nth : nth + 1])
        for several, single in zip(three, one, strict=True):
            np.testing.assert_array_equal(several[:, nth], single[:, 0])


@examples(50)
@given(st.integers(0, 5), st.integers(1, 4), st.integers(0, 2**40))
def test_scripted_values_are_such_as_a_sampler_could_give(num_logprobs, num_rows, first_index):
    requests = [(first_index + row, 3 * row) for row in range(num_rows)]
    own = config(num_logprobs)
    _, tokens, drawn = ScriptedSampler(own).sample(batch(*requests))
    assert [each.dtype for each in drawn] == [np.int32, np.float32, np.int32]
    assert drawn.token_ids.shape == drawn.logprobs.shape == (num_rows, 1, num_logprobs + 1)
    np.testing.assert_array_equal(drawn.token_ids[:, :, 0], tokens)
    assert ((drawn.token_ids >= 0) & (drawn.token_ids < 1000)).all()
    assert (drawn.logprobs <= 0).all()
    assert (np.diff(drawn.logprobs[:, :, 1:]) <= 0).all(), "the most probable first"
    assert ((drawn.ranks >= 1) & (drawn.ranks <= 1000)).all()


def test_nothing_is_drawn_where_nothing_is_asked_for():
    assert scripted_logprobs(EngineConfig(4, 64)) is None
    assert load_logprobs("none") is None


@both
@examples(100)
@given(every_count, st.integers(0, 4), st.data())
def test_each_request_gets_its_own_positions(kind, counts, num_logprobs, data):
    width = max(counts, default=1) or 1
    drawn = draw(len(counts), width, num_logprobs)
    num_tokens = np.array(counts, np.int32)
    given_counts = None if width == 1 and num_tokens.all() else num_tokens
    step = pickle.loads(pickle.dumps(kind().from_device(drawn, given_counts), 5))
    valid = data.draw(
        st.none()
        | st.lists(st.booleans(), min_size=len(counts), max_size=len(counts)).map(np.array)
    )
    rows = [row for row in range(len(counts)) if valid is None or valid[row]]
    mask = None if valid is None else valid.astype(np.bool_)
    firsts = first_positions(step.offsets, len(rows), mask).tolist()
    kept = [data.draw(st.integers(0, counts[row])) for row in rows]
    each = list(kind().per_request(step, firsts, kept))
    assert [len(own) for own in each] == kept
    gathered = kind().empty()
    for row, own in zip(rows, each, strict=True):
        gathered.extend(own)
        for nth, logprobs in enumerate(own):
            assert list(logprobs) == drawn.token_ids[row, nth].tolist()
            values = list(logprobs.values())
            assert [one.logprob for one in values] == drawn.logprobs[row, nth].tolist()
            ranks = [int(drawn.ranks[row, nth]), *range(1, num_logprobs + 1)]
            assert [one.rank for one in values] == ranks
    assert list(gathered) == [logprobs for own in each for logprobs in own]
    assert len(gathered) == sum(kept)


@both
def test_a_sampled_token_among_the_most_probable_has_its_rank_there(kind):
    """As in vLLM, where the sampled token goes into the dictionary first and is written over."""
    drawn = draw(1, 1, 2)
    drawn.token_ids[0, 0] = [4, 9, 4]
    (own,) = kind().per_request(kind().from_device(drawn, None), [0], [1])
    (logprobs,) = own
    assert list(logprobs) == [4, 9]
    assert logprobs[4].rank == 2


def test_flat_positions_end_where_they_end():
    (own,) = ArrayLogprobs().per_request(ArrayLogprobs().from_device(draw(1, 1, 2), None), [0], [1])
    for position in (-1, 1):
        with pytest.raises(IndexError):
            own[position]


@pytest.mark.parametrize(
    ("text", "choice"),
    [("none", ("none", 0)), ("lists:5", ("lists", 5)), ("arrays:0", ("arrays", 0))],
)
def test_what_is_asked_for_is_read_in_one_place(text, choice):
    assert parse_logprobs(text) == choice
