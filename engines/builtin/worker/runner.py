"""The model runner: keeps each request's state, runs the device, hands the tokens over."""

from typing import Any, NamedTuple

import numpy as np
import torch

from engines.builtin.device import DeviceBatch, StepHandle
from engines.builtin.registries import DEVICES, REPRESENTATIONS
from engines.builtin.representations import Representation, count_tokens
from engines.builtin.worker import ModelRunnerOutput, SchedulerOutput
from engines.protocol import EngineConfig, Int32Array


class _Launched(NamedTuple):
    handle: StepHandle
    rows: Int32Array
    all_sample: bool


class Runner:
    """The persistent batch of vLLM's runner: a slot a request, state in arrays.

    Positions live here, not with the scheduler: with two steps under way the scheduler does
    not know yet how many tokens the first has brought.
    """

    def __init__(self, config: EngineConfig) -> None:
        slots = config.max_num_seqs
        self._device: Any = DEVICES.load(config.device)(config)
        self._representation: Representation = REPRESENTATIONS.load(config.representation)()
        self._request_index = np.zeros(slots, np.int64)
        self._num_computed = np.zeros(slots, np.int64)
        self._num_output = np.zeros(slots, np.int64)
        longest = config.max_model_len + 2 * max(config.num_accepted)
        blocks = -(-longest // config.block_size)
        self._block_table = np.zeros((slots, blocks), np.int32)
        self._host_tokens = torch.empty(
            (slots, max(config.num_accepted)),
            dtype=torch.int32,
            pin_memory=torch.cuda.is_available(),
        )

    def launch(self, scheduled: SchedulerOutput) -> _Launched:
        """Update the state by what changed and start the step on the device."""
        if scheduled.new_rows:
            self._request_index[scheduled.new_rows] = scheduled.new_request_index
            self._num_computed[scheduled.new_rows] = 0
            self._num_output[scheduled.new_rows] = 0
        if len(scheduled.block_ids):
            self._block_table[scheduled.block_rows, scheduled.block_positions] = scheduled.block_ids
        rows = scheduled.rows
        context = self._num_computed[rows] + scheduled.num_scheduled
        handle = self._device.launch(
            DeviceBatch(
                self._request_index[rows],
                self._num_output[rows],
                scheduled.num_scheduled,
                context,
                scheduled.samples,
            )
        )
        self._advance(scheduled, context, handle)
        return _Launched(handle, rows, scheduled.samples is None)

    def _advance(self, scheduled: SchedulerOutput, context: Any, handle: StepHandle) -> None:
        rows = scheduled.rows
        if scheduled.samples is None and handle.tokens.shape[1] == 1:
            self._num_computed[rows] = context
            self._num_output[rows] += 1
            return
        num_tokens = count_tokens(handle.tokens)
        sampled = 1 if num_tokens is None else num_tokens
        # A decode step computes as many positions as it may sample; the rejected ones are undone.
        rejected = np.where(
            self._num_output[rows] > 0, np.maximum(scheduled.num_scheduled - sampled, 0), 0
        )
        self._num_computed[rows] = context - rejected
        self._num_output[rows] += sampled

    def wait(self, step: _Launched) -> tuple[int, int]:
        """Block until the device has the step's tokens; nanoseconds blocked, of these too many."""
        return step.handle.wait()

    def handoff(self, step: _Launched, waited: tuple[int, int]) -> ModelRunnerOutput:
        """Copy the tokens to the host buffer and give them their representation."""
        host = self._host_tokens[: len(step.rows)]
        host.copy_(step.handle.tokens)
        one_each = step.all_sample and host.shape[1] == 1
        num_tokens = None if one_each else count_tokens(host)
        sampled = self._representation.from_device(host, num_tokens)
        return ModelRunnerOutput(sampled, *waited, step.handle.step_seconds)
