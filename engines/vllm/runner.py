"""In the place of vLLM's model runner: takes its scheduler output, runs one of our devices."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from engines.builtin.device import DeviceBatch, StepHandle
from engines.builtin.registries import DEVICES, REPRESENTATIONS
from engines.builtin.representations import Representation, count_tokens
from engines.prepared.features import fitting_tokens
from engines.protocol import EngineConfig, Int32Array, Int64Array
from engines.vllm.features import features_of
from engines.vllm.request_names import request_number


class LaunchedBatch(NamedTuple):
    """A step under way and the requests in it, in the order of their rows."""

    handle: StepHandle
    req_ids: list[str]
    req_id_to_index: dict[str, int]
    all_sample: bool


class HostPathRunner:
    """The persistent batch of vLLM's runner: a slot a request, state in arrays."""

    def __init__(self, config: EngineConfig) -> None:
        self._device: Any = DEVICES.load(config.device)(config)
        self._representation: Representation = REPRESENTATIONS.load(config.representation)()
        self._max_num_seqs = config.max_num_seqs
        self._slot_of: dict[str, int] = {}
        # A finished request's slot comes free with the next step, when others have theirs already.
        self._free = list(range(2 * config.max_num_seqs))
        self._request_index = np.zeros(len(self._free), np.int64)
        self._prompt_len = np.zeros(len(self._free), np.int64)
        self._num_output = np.zeros(len(self._free), np.int64)
        width = max(config.num_accepted)
        self._host_tokens = np.empty((config.max_num_seqs, width), np.int32)
        # Nobody looks at drafts, for how many are accepted is scripted.
        self._drafts = np.full((config.max_num_seqs, width - 1), config.vocab_size - 1)
        self._has_drafts = width > 1
        has_grammar = features_of(config).has_grammar
        self._fitting = fitting_tokens(config.tokenizer) if has_grammar else None
        self._num_named = 0
        self._req_ids: list[str] = []
        self._req_id_to_index: dict[str, int] = {}
        self._slots = np.empty(0, np.int64)

    def launch(self, scheduler_output: Any) -> LaunchedBatch:
        """Update the state by what changed and start the step on the device."""
        self.forget(scheduler_output.finished_req_ids)
        new, cached = scheduler_output.scheduled_new_reqs, scheduler_output.scheduled_cached_reqs
        for request in new:
            self._admit(request)
        self._arrange([*cached.req_ids, *(request.req_id for request in new)])
        num_computed = [*cached.num_computed_tokens, *(each.num_computed_tokens for each in new)]
        batch = self._batch(scheduler_output, np.array(num_computed, np.int64))
        handle = self._device.launch(batch)
        self._num_output[self._slots] += 1 if handle.num_tokens is None else handle.num_tokens
        all_sample = batch.samples is None
        return LaunchedBatch(handle, self._req_ids.copy(), self._req_id_to_index.copy(), all_sample)

    def forget(self, req_ids: Iterable[str]) -> None:
        """Free the slots of requests that have finished."""
        for req_id in req_ids:
            if (slot := self._slot_of.pop(req_id, None)) is not None:
                self._free.append(slot)

    def _admit(self, request: Any) -> None:
        if request.req_id in self._slot_of:
            return  # preempted before: model runner V2 is told of it as of a new one
        slot = self._slot_of[request.req_id] = self._free.pop()
        number = request_number(request.req_id)
        # Those that nobody has named are numbered as they come.
        self._request_index[slot] = self._num_named if number is None else number
        self._num_named += number is None
        self._prompt_len[slot] = len(request.prompt_token_ids)
        self._num_output[slot] = 0

    def _arrange(self, req_ids: list[str]) -> None:
        """Find the rows' slots; in a steady batch they are those of the step before."""
        if req_ids == self._req_ids:
            return
        self._req_ids = req_ids
        self._req_id_to_index = {req_id: row for row, req_id in enumerate(req_ids)}
        self._slots = np.array([self._slot_of[req_id] for req_id in req_ids], np.int64)

    def _batch(self, scheduler_output: Any, num_computed: Int64Array) -> DeviceBatch:
        rows = len(self._req_ids)
        num_scheduled: Int32Array
        if scheduler_output.total_num_scheduled_tokens == rows:
            num_scheduled = np.ones(rows, np.int32)
        else:
            by_id = scheduler_output.num_scheduled_tokens
            num_scheduled = np.fromiter((by_id[r] for r in self._req_ids), np.int32, rows)
        slots = self._slots
        num_output = self._num_output[slots]
        context = num_computed + num_scheduled
        samples = context >= self._prompt_len[slots] + num_output
        return DeviceBatch(
            self._request_index[slots],
            num_output,
            num_scheduled,
            context,
            None if samples.all() else samples,
            # What a preempted request computes again is no draft.
            num_computed + 1 >= self._prompt_len[slots] + num_output if self._has_drafts else None,
        )

    def handoff(self, step: LaunchedBatch) -> Any:
        """Copy the tokens to the host buffer and give them their representation."""
        host = self._host_tokens[: len(step.req_ids)]
        host[:] = step.handle.tokens
        if self._fitting is not None:
            host[:] = self._fitting[host]
        one_each = step.all_sample and host.shape[1] == 1
        return self._representation.from_device(host, None if one_each else count_tokens(host))

    def draft(self, step: LaunchedBatch) -> tuple[list[str], list[list[int]]]:
        """Drafts for the next step of each request that has sampled in this one."""
        num_tokens = step.handle.num_tokens
        assert num_tokens is not None
        sampled = np.flatnonzero(num_tokens).tolist()
        return [step.req_ids[row] for row in sampled], self._drafts[: len(sampled)].tolist()
