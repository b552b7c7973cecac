"""The built-in engine: schedule, launch, wait, hand over, process; one step or two under way."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from engines.builtin.block_pool import check_room, num_gpu_blocks
from engines.builtin.delivery import Delivery
from engines.builtin.delivery.choice import build_delivery, check_delivery, check_params
from engines.builtin.delivery.choice import contradiction as delivery_contradiction
from engines.builtin.delivery.collector import RequestOutputCollector
from engines.builtin.delivery.outputs import RequestOutput
from engines.builtin.device.choice import complete_device, device_class, prompt_vocab_size
from engines.builtin.logprobs import RequestLogprobs
from engines.builtin.registries import (
    DELIVERIES,
    OUTPUT_PROCESSING,
    REPRESENTATIONS,
    SCHEDULING_POLICIES,
    WIRES,
    WORKERS,
)
from engines.builtin.release import launch
from engines.builtin.request_table import Request, RequestTable
from engines.builtin.scheduler import ScheduledStep, Scheduler
from engines.builtin.worker import Worker
from engines.protocol import (
    PHASES,
    BoolArray,
    EngineConfig,
    EngineDeadError,
    Int32Array,
    Launch,
    SamplingParams,
    StepOutput,
)

_NOTHING = StepOutput(np.empty(0, np.int64), np.empty(0, np.int32), (), np.empty(0, np.int64),
                      np.empty(0, np.int8))  # fmt: skip


class Engine:
    """A `StepEngine` in this process, its runner here or in a worker process.

    Raises ValueError for a configuration that contradicts itself, EngineDeadError where a
    worker process has ended.
    """

    role = "engine"
    has_wait_hook = True
    package = "engines"
    shapes = (("list_of_lists", "per_request"), ("flat_arrays", "columnar"))

    @staticmethod
    def validate(config: EngineConfig) -> None:
        """Raise ValueError where a part is unknown or a number impossible."""
        REPRESENTATIONS.check(config.representation)
        check_delivery(config)
        OUTPUT_PROCESSING.check(config.output_processing)
        WORKERS.check(config.worker)
        WIRES.check(config.wire)
        SCHEDULING_POLICIES.check(config.scheduling_policy)
        if config.max_num_seqs < 1:
            raise ValueError(f"batch size {config.max_num_seqs}: must be at least 1")
        if config.num_gpu_blocks_override < 0:
            raise ValueError(
                f"--num-gpu-blocks-override {config.num_gpu_blocks_override}: must be 0 or more"
            )
        if min(config.num_accepted, default=0) < 1:
            raise ValueError("num_accepted: every decode step must yield at least 1 token")
        if config.max_num_batched_tokens < (most := max(config.num_accepted)):
            raise ValueError(
                f"max_num_batched_tokens {config.max_num_batched_tokens}: a decode step of one "
                f"request takes {most}; raise it to at least that"
            )
        if config.tensor_parallel_size < 1:
            raise ValueError(f"--tensor-parallel {config.tensor_parallel_size}: must be at least 1")
        device_class(config).check(config)

    @staticmethod
    def complete(config: EngineConfig) -> EngineConfig:
        """Fill in what was left open; the profile is the model's on an H200."""
        representation = config.representation or "list_of_lists"
        return replace(complete_device(config), representation=representation)

    @staticmethod
    def is_exact(config: EngineConfig) -> bool:
        """Whether counts repeat to the digit: no clock, no second process."""
        return config.device == "null" and config.worker == "in-process"

    @staticmethod
    def is_alone(config: EngineConfig) -> bool:
        """Whether the device has room for no other engine beside this one."""
        return device_class(config).is_alone

    @staticmethod
    def can_pause(config: EngineConfig) -> bool:
        """Whether no step is under way between two steps, or none takes any time."""
        device = device_class(config)
        takes_time = device.needs_profile
        return not device.has_model and (not takes_time or config.output_processing == "inline")

    @staticmethod
    def launch(python: str, release: str) -> Launch:
        """In this interpreter or the one asked for; ``release`` is a tree of gcbench's."""
        return launch(python, release)

    @staticmethod
    def contradiction(config: EngineConfig) -> str:
        """Why parts that are each known do not go together, in one sentence, or ""."""
        columnar = DELIVERIES.load(config.delivery).needs_columns
        if columnar and not REPRESENTATIONS.load(config.representation).columnar:
            return (
                f"{config.delivery} delivery of {config.representation}: it has no columns; use "
                "--delivery per_request or an array representation"
            )
        if why := delivery_contradiction(config):
            return why
        if config.tensor_parallel_size > 1:
            if config.worker == "in-process":
                return (
                    f"--tensor-parallel {config.tensor_parallel_size} in one process: each rank "
                    "has its own; use --worker process"
                )
            if not device_class(config).backend:
                return (
                    f"--tensor-parallel {config.tensor_parallel_size}: device {config.device} has "
                    "no model to divide; use cpu or cuda"
                )
        return ""

    def __init__(self, config: EngineConfig) -> None:
        self.validate(config)
        if why := self.contradiction(config):
            raise ValueError(why)
        self.clock: Callable[[], int] = time.perf_counter_ns
        self.phase_stamps = [0] * (len(PHASES) + 1)
        self.while_device_busy: Callable[[], object] | None = None
        table = RequestTable(config)
        self._delivery: Delivery = build_delivery(config, table)
        self.config = config
        self.is_scripted = not device_class(config).has_model
        self.vocab_size = prompt_vocab_size(config)
        self._handoff_bytes = REPRESENTATIONS.load(config.representation)().nbytes
        self._left_under_way: int = OUTPUT_PROCESSING.load(config.output_processing)
        self._under_way: deque[ScheduledStep] = deque()
        self._finished: dict[int, Int32Array | list[int]] = {}
        self._worker: Worker = WORKERS.load(config.worker)(config)
        try:
            num_blocks = self._lay_out_cache()
        except (EngineDeadError, ValueError):
            self._worker.shutdown()
            raise
        self._scheduler = Scheduler(config, num_blocks, table, self._delivery.token_ids)

    def _lay_out_cache(self) -> int:
        """Blocks of the KV cache, there from now on."""
        num_blocks = num_gpu_blocks(self._worker.num_kv_tokens(), self.config)
        check_room(num_blocks, self.config)
        self._worker.initialize_cache(num_blocks)
        return num_blocks

    @property
    def wire_bytes(self) -> int:
        """Bytes that have crossed to and from the worker process so far."""
        return self._worker.wire_bytes

    def add_request(
        self,
        request_index: int,
        prompt_token_ids: Int32Array,
        params: SamplingParams,
        priority: int = 0,
    ) -> None:
        """Queue a request; a smaller ``priority`` goes first under the policy of that name.

        Raises ValueError where it can never be served.
        """
        check_params(request_index, params, self.config)
        self._scheduler.add(Request(request_index, prompt_token_ids, params, priority))

    def abort_request(self, request_index: int) -> None:
        """End a request now and forget it; unknown or finished ones are left alone, as in vLLM."""
        row = self._scheduler.table.row_of.get(request_index)
        if row is not None:
            self._delivery.retire(row)
            self._scheduler.finish(np.array([row], np.int32))
        elif not self._scheduler.abort_waiting(request_index):
            return
        self._delivery.forget(request_index)

    def has_unfinished_requests(self) -> bool:
        """Whether another step has anything to do."""
        return bool(self._scheduler.num_running or self._scheduler.waiting or self._under_way)

    def step(self) -> StepOutput:
        """Schedule and launch a step, then process the oldest one that is due."""
        clock, stamps = self.clock, self.phase_stamps
        stamps[0] = clock()
        scheduled, admitted, preempted = self._scheduler.schedule()
        for row, request in preempted:
            request.output_token_ids = self._delivery.token_ids(row, 0)
            request.suspended = self._delivery.suspend(row)
        for each in admitted:
            self._delivery.admit(each.row, each.request)
        stamps[1] = clock()
        if scheduled is not None:
            self._worker.launch(scheduled.output)
            self._under_way.append(scheduled)
        stamps[2] = clock()
        enough = self._left_under_way if scheduled is not None else 0
        if len(self._under_way) <= enough:
            stamps[3:] = [stamps[2]] * 3
            return _NOTHING
        if self.while_device_busy is not None:
            self.while_device_busy()
        self._worker.wait()
        stamps[3] = clock()
        output = self._worker.handoff()
        stamps[4] = clock()
        step_output = self._process(self._under_way.popleft(), output)
        stamps[5] = clock()
        return step_output

    def _process(self, step: ScheduledStep, output: Any) -> StepOutput:
        table = self._scheduler.table
        rows = step.output.rows
        unchanged: BoolArray = table.epoch[rows] == step.epochs
        valid = None if unchanged.all() else unchanged
        if valid is not None:
            rows = rows[valid]
        delivered = self._delivery.process(rows, output.sampled, valid, output.logprobs)
        decodes = step.decodes if valid is None or step.decodes is None else step.decodes[valid]
        self._scheduler.update(rows, delivered.num_sampled, decodes)
        request_index = table.request_index[rows]
        finished = request_index[delivered.finished]
        if len(finished):
            ended = rows[delivered.finished]
            table.num_output_tokens[ended] += (delivered.num_tokens - delivered.num_sampled)[
                delivered.finished
            ]
            self._retire(ended)
        num_tokens = delivered.num_tokens
        if not num_tokens.all():
            request_index, num_tokens = request_index[num_tokens > 0], num_tokens[num_tokens > 0]
        return StepOutput(
            request_index,
            num_tokens,
            delivered.outputs,
            finished,
            delivered.reasons,
            output.sampled,
            output.device_ns,
            output.late_ns,
            output.device_seconds,
        )

    def _retire(self, rows: Int32Array) -> None:
        for row, index in zip(
            rows.tolist(), self._scheduler.table.request_index[rows].tolist(), strict=True
        ):
            self._finished[index] = self._delivery.retire(row)
        self._scheduler.finish(rows)

    def scheduler_stats(self) -> dict[str, int]:
        """What scheduling came to so far, with vLLM's names; cached prefixes in tokens."""
        cache = self._scheduler.kv_cache.prefix_cache
        return {
            "num_preemptions": self._scheduler.num_preemptions,
            "prefix_cache_queries": cache.num_queries if cache else 0,
            "prefix_cache_hits": cache.num_hits if cache else 0,
        }

    def device_stats(self) -> dict[str, float]:
        """What the device has done so far and could do at best; between steps only."""
        return self._worker.device_stats()

    def request_output(self, request_index: int) -> RequestOutput:
        """A running request's output so far. Raises KeyError for one that is not running."""
        return self._delivery.request_output(self._scheduler.table.row_of[request_index])

    def output_token_ids(self, request_index: int) -> Int32Array:
        """A finished request's tokens, int32 ``[num_output]``; the engine then forgets it."""
        self._delivery.forget(request_index)
        return np.asarray(self._finished.pop(request_index), np.int32)

    def output_text(self, request_index: int) -> str:
        """A finished request's text, until its tokens are taken.

        Raises ValueError where there is no detokenizer.
        """
        return self._delivery.output_text(request_index)

    def output_logprobs(self, request_index: int) -> RequestLogprobs:
        """A finished request's log-probabilities, until its tokens are taken.

        Raises ValueError where none were asked for.
        """
        return self._delivery.output_logprobs(request_index)

    def request_stream(self, request_index: int) -> RequestOutputCollector:
        """The stream of a request that runs, or whose tokens have not been taken yet.

        Raises KeyError for any other, ValueError where requests have none.
        """
        return self._delivery.request_stream(request_index)

    def handoff_bytes(self, sampled: Any) -> int:
        """Memory of `StepOutput.sampled`, padding and Python objects included."""
        num_bytes: int = self._handoff_bytes(sampled)
        return num_bytes

    def collective_rpc(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call ``function(process, *args)`` here, then in the worker process if there is one."""
        return [function(self, *args), *self._worker.rpc(function, args)]

    def shutdown(self) -> None:
        """End the worker process; safe to call twice."""
        self._worker.shutdown()
