"""The model runner: keeps each request's state, runs the device, hands the tokens over."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from engines.builtin.block_pool import blocks_for_longest
from engines.builtin.device import Device, DeviceBatch, StepHandle
from engines.builtin.device.choice import device_class
from engines.builtin.logprobs import load_logprobs
from engines.builtin.model import Parallel
from engines.builtin.model.parallel import ONE_RANK
from engines.builtin.registries import REPRESENTATIONS
from engines.builtin.representations import Representation, count_tokens
from engines.builtin.worker import ModelRunnerOutput, SchedulerOutput
from engines.builtin.worker.multi_step import DecodePass, JoinedPasses, passes
from engines.protocol import EngineConfig, Int32Array


class LaunchedStep(NamedTuple):
    """A step that the device has been given."""

    handle: StepHandle
    rows: Int32Array
    all_sample: bool


class ModelRunner:
    """The persistent batch of vLLM's runner: a slot a request, state in arrays.

    Positions live here, not with the scheduler: with two steps under way the scheduler does
    not know yet how many tokens the first has brought. So drafts are cut here too, with vLLM's
    limit: none stands past ``max_model_len - 1`` tokens.
    """

    def __init__(self, config: EngineConfig, parallel: Parallel = ONE_RANK) -> None:
        slots = config.max_num_seqs
        self.device: Device = device_class(config).build(config, parallel)
        self._representation: Representation = REPRESENTATIONS.load(config.representation)()
        self._logprobs = load_logprobs(config.logprobs)
        self._request_index = np.zeros(slots, np.int64)
        self._num_computed = np.zeros(slots, np.int64)
        self._num_output = np.zeros(slots, np.int64)
        self._num_prefill = np.zeros(slots, np.int64)
        self._drafts = max(config.num_accepted) > 1
        self._most_steps = config.num_scheduler_steps
        self._last_position = config.max_model_len - 1
        longest = blocks_for_longest(config.max_model_len, config)
        self._block_table = np.zeros((slots, longest), np.int32)
        # A step has drafts or several passes, never both.
        width = max(config.num_scheduler_steps, *config.num_accepted)
        self._host_tokens = np.empty((slots, width), np.int32)

    def launch(self, scheduled: SchedulerOutput) -> LaunchedStep:
        """Update the state by what changed and start the step on the device."""
        new = scheduled.new
        if new.rows:
            self._request_index[new.rows] = new.request_index
            self._num_computed[new.rows] = new.num_computed
            self._num_output[new.rows] = new.num_output
            self._num_prefill[new.rows] = [len(token_ids) for token_ids in new.token_ids]
        if len(scheduled.block_ids):
            self._block_table[scheduled.block_rows, scheduled.block_positions] = scheduled.block_ids
        launch: Callable[[SchedulerOutput], StepHandle] = self._launch_pass
        if self._most_steps > 1:
            launch = self._launch_several
        return LaunchedStep(launch(scheduled), scheduled.rows, scheduled.samples is None)

    def _launch_several(self, scheduled: SchedulerOutput) -> JoinedPasses:
        """Pass by pass, each with the tokens of the one before; one while a prompt runs."""
        rows = scheduled.rows
        if (self._num_computed[rows] >= self._num_prefill[rows]).all():
            parts = [
                DecodePass(places, self._launch_pass(part)) for places, part in passes(scheduled)
            ]
        else:
            parts = [DecodePass(np.arange(len(rows)), self._launch_pass(scheduled))]
        return JoinedPasses(parts, len(rows), self._most_steps)

    def _launch_pass(self, scheduled: SchedulerOutput) -> StepHandle:
        rows = scheduled.rows
        computed = self._num_computed.take(rows)
        num_scheduled, decodes = scheduled.num_scheduled, None
        if self._drafts:
            decodes = computed >= self._num_prefill[rows]
            # A request that has ended can be under way once more; it computes one token then.
            room = np.maximum(self._last_position - computed, 1)
            num_scheduled = np.minimum(num_scheduled, room).astype(np.int32)
        batch = DeviceBatch(
            self._request_index.take(rows),
            self._num_output.take(rows),
            num_scheduled,
            computed + num_scheduled,
            scheduled.samples,
            decodes,
            scheduled,
            self._block_table,
        )
        handle = self.device.launch(batch)
        self._advance(rows, batch, handle)
        return handle

    def _advance(self, rows: Int32Array, batch: DeviceBatch, handle: StepHandle) -> None:
        if batch.samples is None and batch.decodes is None:
            self._num_computed[rows] = batch.context
            self._num_output[rows] = batch.position + 1
            return
        self._num_computed[rows], self._num_output[rows] = batch.after(handle.num_tokens)

    def wait(self, step: LaunchedStep) -> tuple[int, int]:
        """Block until the device has the step's tokens; nanoseconds blocked, of these too many."""
        return step.handle.wait()

    def handoff(self, step: LaunchedStep, waited: tuple[int, int]) -> ModelRunnerOutput:
        """Copy the tokens to the host buffer and give them their representation."""
        host = self._host_tokens[: len(step.rows)]
        host[:] = step.handle.tokens
        one_each = step.all_sample and host.shape[1] == 1
        num_tokens = None if one_each else count_tokens(host)
        sampled = self._representation.from_device(host, num_tokens)
        logprobs = None
        if self._logprobs is not None and step.handle.logprobs is not None:
            logprobs = self._logprobs.from_device(step.handle.logprobs, num_tokens)
        return ModelRunnerOutput(sampled, *waited, step.handle.step_seconds, logprobs)
