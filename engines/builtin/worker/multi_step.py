"""Several forward passes from one scheduling to the next: a step is taken apart, and put together.

vLLM's V0 had it as multi-step scheduling: the runner feeds each pass the token of the one before,
and the scheduler hears of all of them at once.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from engines.builtin.device import StepHandle
from engines.builtin.logprobs import DeviceLogprobs
from engines.builtin.representations import PLACEHOLDER_TOKEN_ID
from engines.builtin.worker import NOBODY, SchedulerOutput
from engines.protocol import Int32Array, Int64Array

_NO_BLOCKS = np.empty(0, np.int32)


class DecodePass(NamedTuple):
    """A pass on the device: of the step's rows those at ``places`` int64, one token each."""

    places: Int64Array
    handle: StepHandle


def passes(scheduled: SchedulerOutput) -> Iterator[tuple[Int64Array, SchedulerOutput]]:
    """Of a step in which every row decodes: the places of those that go on, and what they compute,
    pass by pass. All blocks come with the first.
    """
    blocks = scheduled.block_rows, scheduled.block_positions, scheduled.block_ids
    for nth in range(int(scheduled.num_scheduled.max())):
        places = np.flatnonzero(scheduled.num_scheduled > nth)
        rows = scheduled.rows[places]
        yield places, SchedulerOutput(rows, np.ones_like(rows), None, NOBODY, *blocks)
        blocks = (_NO_BLOCKS,) * 3


class JoinedPasses:
    """A `StepHandle` of several: a column of its tokens is a pass."""

    num_tokens: Int32Array | None = None  # nobody asks: each pass has told the runner its own

    def __init__(self, parts: Sequence[DecodePass], num_reqs: int, width: int) -> None:
        self._parts = parts
        self._shape = num_reqs, width
        self.tokens: Int32Array
        self.logprobs: DeviceLogprobs | None = None
        self.step_seconds = 0.0

    def wait(self) -> tuple[int, int]:
        """Block until the last pass is done; too late is only who comes after that."""
        tokens = np.full(self._shape, PLACEHOLDER_TOKEN_ID, np.int32)
        device_ns = late_ns = 0
        for column, (places, handle) in enumerate(self._parts):
            blocked_ns, late_ns = handle.wait()
            device_ns += blocked_ns
            self.step_seconds += handle.step_seconds
            tokens[places, column] = handle.tokens[:, 0]
        self.tokens = tokens
        self.logprobs = self._joined_logprobs()
        return device_ns, late_ns

    def _joined_logprobs(self) -> DeviceLogprobs | None:
        first = self._parts[0].handle.logprobs
        if first is None:
            return None
        joined = DeviceLogprobs(
            *(np.zeros((*self._shape, *each.shape[2:]), each.dtype) for each in first)
        )
        for column, (places, handle) in enumerate(self._parts):
            assert handle.logprobs is not None
            for whole, part in zip(joined, handle.logprobs, strict=True):
                whole[places, column] = part[:, 0]
        return joined
