"""Steps fed to a runner by hand: equal rows that decode, beside a chunk of a prompt."""

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.calibrate.host_launch import StampedDevice
from benchmarks.calibrate.point import LaunchTimes, Point, Sample
from engines.builtin.device.choice import prompt_vocab_size
from engines.builtin.worker import NOBODY, NewRequests, SchedulerOutput
from engines.protocol import EngineConfig, Int32Array

if TYPE_CHECKING:
    from engines.builtin.worker.runner import ModelRunner

WARM_UP = 1
"""Steps that are thrown away, after the one that admits the rows."""


class _Blocks(NamedTuple):
    """As in `SchedulerOutput`; no two rows share one."""

    rows: Int32Array
    positions: Int32Array
    ids: Int32Array

    def of(self, first_row: int, after: int) -> "_Blocks":
        """Those of some of the rows."""
        own = (self.rows >= first_row) & (self.rows < after)
        return _Blocks(*(each[own] for each in self))


def longest_row(point: Point, num_steps: int) -> int:
    """Tokens of the longest row after ``num_steps`` timed steps."""
    return int(_row_lengths(point, num_steps).max())


def num_blocks(point: Point, num_steps: int, block_size: int) -> int:
    """KV blocks that the rows hold then."""
    return int((-(-_row_lengths(point, num_steps) // block_size)).sum())


def sample(runner: "ModelRunner", config: EngineConfig, point: Point, num_steps: int) -> Sample:
    """Measure a point by the device's own clock, ``num_steps`` steps of it.

    The rows begin in the middle of their lives: what lies in the KV cache before is whatever does.
    A context shorter than the steps before the middle one is measured at their number instead.
    """
    first = _first_context(point, num_steps)
    blocks = _lay_out(_row_lengths(point, num_steps), config.block_size)
    vocab_size = np.int32(prompt_vocab_size(config))
    prompt = np.arange(max(first, point.prefill + 1), dtype=np.int32) % vocab_size
    if point.batch_size:
        _run(runner, _admit(point.batch_size, prompt[:first], blocks))
    step = _timed_step(point, prompt, blocks)
    steps = [_run(runner, step) for _ in range(WARM_UP + num_steps)]
    if point.batch_size:
        point = point._replace(context=first + _before_middle(num_steps))
    return Sample(point, steps[WARM_UP:])


def _row_lengths(point: Point, num_steps: int) -> Int32Array:
    """Tokens that each row holds in the end, the prompt's row last."""
    last = _first_context(point, num_steps) + WARM_UP + num_steps
    rows = [last] * point.batch_size + [point.prefill] * (point.prefill > 0)
    return np.array(rows, np.int32)


def _first_context(point: Point, num_steps: int) -> int:
    """Context in the step that admits the rows: the middle one of the timed has the point's."""
    return max(1, point.context - _before_middle(num_steps))


def _before_middle(num_steps: int) -> int:
    return 1 + WARM_UP + (num_steps - 1) // 2


def _lay_out(lengths: Int32Array, block_size: int) -> _Blocks:
    counts = -(-lengths // block_size)
    ends = np.cumsum(counts)
    rows = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    ids = np.arange(ends[-1], dtype=np.int32)
    return _Blocks(rows, (ids - (ends - counts)[rows]).astype(np.int32), ids)


def _admit(batch_size: int, prompt: Int32Array, blocks: _Blocks) -> SchedulerOutput:
    """The step in which the rows compute the last token of their prompts."""
    each = [0] * batch_size
    rows = np.arange(batch_size, dtype=np.int32)
    new = NewRequests(
        rows.tolist(), rows.tolist(), [prompt] * batch_size, [len(prompt) - 1] * batch_size, each
    )
    return SchedulerOutput(rows, np.ones_like(rows), None, new, *blocks.of(0, batch_size))


def _timed_step(point: Point, prompt: Int32Array, blocks: _Blocks) -> SchedulerOutput:
    """The step that is timed; a prompt is admitted anew each time, and never through."""
    row = point.batch_size
    rows = np.arange(row, dtype=np.int32)
    if not point.prefill:
        return SchedulerOutput(rows, np.ones_like(rows), None, NOBODY, *blocks.of(0, 0))
    new = NewRequests([row], [row], [prompt[: point.prefill + 1]], [0], [0])
    return SchedulerOutput(
        np.arange(row + 1, dtype=np.int32),
        np.append(np.ones_like(rows), np.int32(point.prefill)),
        np.arange(row + 1) < row,
        new,
        *blocks.of(row, row + 1),
    )


def _run(runner: "ModelRunner", scheduled: SchedulerOutput) -> LaunchTimes:
    """A step, and all that is read of it."""
    step = runner.launch(scheduled)
    runner.wait(step)
    ended_ns = time.perf_counter_ns()
    device = runner.device
    assert isinstance(device, StampedDevice)
    return LaunchTimes(
        (device.launched_ns - device.began_ns) / 1e9,
        (ended_ns - device.began_ns) / 1e9,
        step.handle.step_seconds,
    )
