"""What a hand-fed device is given: the steps that were asked for, in blocks of their own."""

from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.calibrate.host_launch import StampedDevice
from benchmarks.calibrate.point import Point
from benchmarks.calibrate.points import grid, sized_config
from benchmarks.calibrate.steps import WARM_UP, longest_row, num_blocks, sample
from engines.builtin.worker.runner import ModelRunner
from engines.protocol import EngineConfig

BLOCK_SIZE = 4


class Watched(StampedDevice):
    """A device that takes no time, and a look at what it is given."""

    def __init__(self, device) -> None:
        super().__init__(device)
        self.seen = []

    def launch(self, batch):
        # The runner's own block table changes with the next launch.
        self.seen.append(batch._replace(block_table=batch.block_table.copy()))
        return super().launch(batch)


def steps_of(point: Point, num_steps: int):
    config = EngineConfig(
        max_num_seqs=point.batch_size + 1,
        max_model_len=longest_row(point, num_steps),
        block_size=BLOCK_SIZE,
        device="null",
    )
    runner = ModelRunner(config)
    runner.device = watched = Watched(runner.device)
    return sample(runner, config, point, num_steps), watched.seen


points = st.one_of(
    st.builds(Point, st.integers(1, 6), st.integers(1, 40), st.sampled_from([0, 1, 3, 17, 40])),
    st.builds(lambda prefill: Point(0, 0, prefill), st.integers(1, 40)),
)


@given(points, st.integers(1, 6))
def test_the_middle_step_is_the_point_and_no_two_rows_share_a_block(asked, num_steps):
    measured, seen = steps_of(asked, num_steps)
    point = measured.point
    assert len(measured.step_seconds) == num_steps
    assert (point.batch_size, point.prefill) == (asked.batch_size, asked.prefill)
    if asked.batch_size and asked.context > WARM_UP + num_steps:
        assert point == asked
    timed = seen[-num_steps:]
    middle = timed[(num_steps - 1) // 2]
    assert point.load == (
        middle.num_scheduled.sum(),
        middle.context.sum(),
        np.dot(middle.num_scheduled, middle.context),
    )
    assert len(seen) == bool(asked.batch_size) + WARM_UP + num_steps
    held = num_blocks(asked, num_steps, BLOCK_SIZE)
    for batch in seen:
        blocks = list(blocks_of(batch))
        assert len(set(blocks)) == len(blocks)
        assert max(blocks) < held


def blocks_of(batch) -> Iterator[int]:
    for row, context in zip(batch.scheduled.rows, batch.context.tolist(), strict=True):
        yield from batch.block_table[row, : -(-context // BLOCK_SIZE)].tolist()


@given(points, st.integers(1, 6))
def test_rows_decode_while_a_prompt_is_never_through(asked, num_steps):
    _, seen = steps_of(asked, num_steps)
    count = asked.batch_size
    prompts = np.zeros(count + 1, np.int64)
    for batch in seen:
        new = batch.scheduled.new
        prompts[new.rows] = [len(token_ids) for token_ids in new.token_ids]
    for batch in seen[-num_steps:]:
        assert (batch.num_scheduled[:count] == 1).all()
        computed = (batch.context - batch.num_scheduled)[:count]
        assert (computed >= prompts[:count]).all(), "its prompt is behind it"
        if asked.prefill:
            assert batch.samples.tolist() == [True] * count + [False]
            assert batch.num_scheduled[count] == batch.context[count] == asked.prefill
            assert prompts[count] > asked.prefill
        else:
            assert batch.samples is None, "as where all decode: a graph will do"


def test_the_grid_is_what_was_asked_for():
    asked = grid([1, 8], [16, 64], [32])
    assert asked == [
        Point(1, 16, 0),
        Point(1, 64, 0),
        Point(8, 16, 0),
        Point(8, 64, 0),
        Point(0, 0, 32),
        Point(1, 16, 32),
        Point(8, 16, 32),
    ]
    assert [str(point) for point in asked[3:6]] == [
        "decode 8 × 64",
        "prefill 32 alone",
        "prefill 32 beside 1 × 16",
    ]


def test_the_engine_is_large_enough_and_no_larger():
    points = grid([1, 8], [16, 64], [32, 100])
    config = sized_config(points, 3, device="cpu", model="opt-125m")
    assert config.max_num_seqs == 9
    assert config.max_num_batched_tokens == 108
    assert config.max_model_len == 100
    assert config.device_profile == ""
