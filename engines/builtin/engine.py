"""The built-in engine: schedule, launch, wait, hand over, process; one step or two under way."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from engines.builtin.block_pool import check_room, num_gpu_blocks
from engines.builtin.delivery.choice import check_params, load_delivery
from engines.builtin.delivery.stage import EndedOutput, Processed, StepTokens
from engines.builtin.device.choice import device_class, prompt_vocab_size
from engines.builtin.engine_rules import EngineRules
from engines.builtin.logprobs import RequestLogprobs, parse_logprobs
from engines.builtin.output_processing import OutputProcessing
from engines.builtin.registries import (
    DETOKENIZERS,
    LOGPROBS,
    OUTPUT_PROCESSING,
    REPRESENTATIONS,
    REQUEST_STREAMS,
    SCHEDULERS,
    WORKERS,
)
from engines.builtin.request_table import Request, RequestTable, Slots
from engines.builtin.scheduler import ScheduledStep, Scheduler
from engines.builtin.token_store import TokenStore
from engines.builtin.worker import ModelRunnerOutput, SendsMessages, Worker
from engines.protocol import (
    FIT,
    PHASES,
    SCRIPT,
    BoolArray,
    Delivered,
    EngineConfig,
    EngineState,
    Int32Array,
    SamplingParams,
    StepOutput,
)

if TYPE_CHECKING:
    from engines.builtin.delivery.collector import RequestOutputCollector
    from engines.builtin.delivery.streams import RequestStreams

_NOTHING = StepOutput(())


class Engine(EngineRules):
    """A `StepEngine` in this process, its runner and its output processor here or elsewhere.

    ``processing`` makes the output processing in the place of what the configuration names, for
    whoever has the objects made in a process of his own. Raises ValueError for a configuration
    that contradicts itself, EngineDeadError where a worker process has ended.
    """

    role = "engine"
    stages: ClassVar = {
        "Scheduler.schedule": "schedule",
        "InProcessWorker.launch": "launch",
        "InProcessWorker.wait": "wait",
        "InProcessWorker.handoff": "handoff",
        "Engine._process": "process",
    }
    """Functions that begin a part of the step, by qualified name, and its name among `PHASES`."""

    def __init__(
        self,
        config: EngineConfig,
        processing: Callable[[EngineConfig], OutputProcessing] | None = None,
    ) -> None:
        config = self.complete(config)
        self.clock: Callable[[], int] = time.perf_counter_ns
        self.phase_stamps = [0] * (len(PHASES) + 1)
        self.while_device_busy: Callable[[], object] | None = None
        table = RequestTable(config)
        delivery = load_delivery(config)
        self._tokens: TokenStore = delivery.token_store(config, table)
        self._slots = Slots()
        self._slot_of: dict[int, int] = {}
        streams = REQUEST_STREAMS.load(config.request_streams)
        self._streams: RequestStreams | None = None if streams is None else streams()
        self.config = config
        self.script = "" if device_class(config).has_model else SCRIPT
        self.vocab_size = prompt_vocab_size(config)
        self._handoff_bytes = REPRESENTATIONS.load(config.representation)().nbytes
        self._under_way: deque[ScheduledStep] = deque()
        self._retired: dict[int, Int32Array | list[int]] = {}
        self._finished: dict[int, Int32Array | list[int]] = {}
        self._ended: dict[int, EndedOutput] = {}
        self._num_surplus = 0
        with ExitStack() as undo:
            mode = processing or OUTPUT_PROCESSING.load(config.output_processing)
            self._processing: OutputProcessing = mode(config)
            undo.callback(self._processing.shutdown)
            self._worker: Worker = WORKERS.load(config.worker)(config)
            undo.callback(self._worker.shutdown)
            num_blocks = self._lay_out_cache()
            undo.pop_all()
        scheduler = SCHEDULERS.load(config.scheduler)
        self._scheduler: Scheduler = scheduler(config, num_blocks, table, self._tokens.token_ids)

    def _lay_out_cache(self) -> int:
        """Blocks of the KV cache, there from now on."""
        num_blocks = num_gpu_blocks(self._worker.num_kv_tokens(), self.config)
        check_room(num_blocks, self.config)
        self._num_fit, self.build_seconds = self._worker.initialize_cache(num_blocks)
        self._num_kv_tokens = num_blocks * self.config.block_size
        return num_blocks

    @property
    def wire_bytes(self) -> int:
        """Bytes that have crossed to and from other processes so far."""
        return self._worker.wire_bytes + self._processing.wire_bytes

    def show_messages(self, to: Callable[[str, bytes], object] | None) -> None:
        """Each that crosses to the worker processes and back, without what frames it.

        Raises ValueError where there are none.
        """
        self._sender.show_messages(to)

    def message_fields(self, direction: str, message: bytes) -> dict[str, int]:
        """What the bytes of one are for, as its wire says."""
        return self._sender.message_fields(direction, message)

    @property
    def _sender(self) -> SendsMessages:
        if isinstance(self._worker, SendsMessages):
            return self._worker
        raise ValueError(
            f"--worker {self.config.worker}: nothing crosses to a worker; use --worker process"
        )

    def rehearse(self, serve: Callable[[], object]) -> None:
        """Have ``serve`` serve what will be served next, where a part learns from that."""
        self._scheduler.rehearse(serve)

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
            self._tokens.retire(row)
            self._scheduler.finish(np.array([row], np.int32))
        else:
            self._scheduler.abort_waiting(request_index)
        slot = self._slot_of.pop(request_index, None)
        if slot is None:
            return
        self._retired.pop(slot, None)  # all of its tokens may be there, and its output be late
        self._processing.remove(slot)
        self._slots.give_back(slot)
        if self._streams is not None:
            self._streams.close(request_index)

    def has_unfinished_requests(self) -> bool:
        """Whether another step has anything to do."""
        scheduler = self._scheduler
        return bool(
            scheduler.num_running
            or scheduler.waiting
            or self._under_way
            or self._processing.num_pending
        )

    def step(self) -> StepOutput:
        """Schedule and launch a step, then process the oldest one that is due."""
        clock, stamps = self.clock, self.phase_stamps
        stamps[0] = clock()
        scheduled, admitted, preempted = self._scheduler.schedule()
        for row, request in preempted:
            request.output_token_ids = self._tokens.token_ids(row, 0)
            self._tokens.retire(row)
        for each in admitted:
            self._admit(each.row, each.request)
        stamps[1] = clock()
        if scheduled is not None:
            self._worker.launch(scheduled.output)
            self._under_way.append(scheduled)
        stamps[2] = clock()
        lag = self._processing.num_under_way if scheduled is not None else 0
        if len(self._under_way) <= lag:
            stamps[3:] = [stamps[2]] * 3
            if scheduled is None and (late := self._processing.wait()):
                return StepOutput([self._deliver(processed) for processed in late])
            return _NOTHING
        if self.while_device_busy is not None:
            self.while_device_busy()
        self._worker.wait()
        stamps[3] = clock()
        output = self._worker.handoff()
        stamps[4] = clock()
        step_output = self._process(self._under_way.popleft(), output)
        # The clock may count what is alive: from here on that is what the consumer gets.
        del scheduled, output
        stamps[5] = clock()
        return step_output

    def _admit(self, row: int, request: Request) -> None:
        if request.slot < 0:
            request.slot = self._slots.take()
            self._slot_of[request.request_index] = request.slot
            self._processing.add(request)
            if self._streams is not None:
                self._streams.open(request.request_index)
        self._scheduler.table.slot[row] = request.slot
        self._tokens.admit(row, request)

    def _process(self, step: ScheduledStep, output: ModelRunnerOutput) -> StepOutput:
        tokens = self._take(step, output)
        return StepOutput(
            [self._deliver(processed) for processed in self._processing.process(tokens)],
            output.sampled,
            output.device_ns,
            output.late_ns,
            output.device_seconds,
        )

    def _take(self, step: ScheduledStep, output: ModelRunnerOutput) -> StepTokens:
        """Give a step's tokens to their requests; those that have all of theirs lose their rows."""
        table = self._scheduler.table
        rows = step.output.rows
        unchanged: BoolArray = table.epoch.take(rows) == step.epochs
        valid = None if unchanged.all() else unchanged
        if valid is not None:
            rows = rows[valid]
        taken = self._tokens.append(rows, output.sampled, valid)
        decodes = step.decodes if valid is None or step.decodes is None else step.decodes[valid]
        self._scheduler.update(rows, taken.num_sampled, decodes)
        self._num_surplus += taken.num_dropped
        tokens = StepTokens(
            table.slot.take(rows),
            table.request_index.take(rows),
            taken.num_tokens,
            taken.finished,
            taken.reasons,
            taken.tokens,
            valid,
            output.logprobs,
        )
        if len(taken.finished):
            ended, slots = rows[taken.finished], tokens.slots[taken.finished]
            cut = (taken.num_sampled - taken.num_tokens)[taken.finished]
            table.num_output_tokens[ended] -= cut
            self._num_surplus += int(cut.sum())
            retired = map(self._tokens.retire, ended.tolist())
            self._retired.update(zip(slots.tolist(), retired, strict=True))
            self._scheduler.finish(ended)
        return tokens

    def _deliver(self, processed: Processed) -> Delivered:
        """What the consumer gets of a step; those whose output has ended are let go of."""
        step, ended = processed.step, processed.finished
        num_tokens, outputs = processed.num_tokens, processed.outputs
        request_index = step.request_index
        finished = request_index[ended]
        if len(finished):
            self._finish(step.slots[ended].tolist(), finished.tolist(), processed.ended)
        if not num_tokens.all():
            request_index, num_tokens = request_index[num_tokens > 0], num_tokens[num_tokens > 0]
        if self._streams is not None:
            self._streams.put(outputs)
            outputs = ()
        return Delivered(
            request_index,
            num_tokens,
            outputs,
            finished,
            processed.reasons,
            processed.processing_ns,
            processed.ready_ns,
        )

    def _finish(self, slots: list[int], indices: list[int], left: Sequence[EndedOutput]) -> None:
        if left:
            self._stop(slots, indices)
        for nth, (slot, index) in enumerate(zip(slots, indices, strict=True)):
            tokens = self._retired.pop(slot)
            if left:
                self._ended[index] = left[nth]
                num_taken = len(tokens)
                tokens = tokens[: left[nth].num_tokens]
                self._num_surplus += num_taken - len(tokens)
            self._finished[index] = tokens
            del self._slot_of[index]
            self._slots.give_back(slot)

    def _stop(self, slots: list[int], indices: list[int]) -> None:
        """End those that a stop string has ended: as far as the scheduler knows they go on."""
        rows: list[int] = []
        for slot, index in zip(slots, indices, strict=True):
            if slot in self._retired:
                continue
            row = self._scheduler.table.row_of.get(index)
            if row is not None:
                rows.append(row)
                self._retired[slot] = self._tokens.retire(row)
            elif (request := self._scheduler.abort_waiting(index)) is not None:
                self._retired[slot] = request.output_token_ids
        if rows:
            self._scheduler.finish(np.array(rows, np.int32))

    def scheduler_stats(self) -> dict[str, int]:
        """What scheduling came to so far, with vLLM's names; cached prefixes in tokens."""
        return self._scheduler.stats() | {"num_surplus_tokens": self._num_surplus}

    def wire_seconds(self) -> dict[str, float]:
        """What the wire to worker processes has taken so far; between steps only."""
        return self._worker.wire_seconds()

    def device_stats(self) -> dict[str, float]:
        """What the device has done so far and could do at best; between steps only."""
        return self._worker.device_stats()

    def output_token_ids(self, request_index: int) -> Int32Array:
        """A finished request's tokens, int32 ``[num_output]``; the engine then forgets it."""
        self._ended.pop(request_index, None)
        if self._streams is not None:
            self._streams.close(request_index)
        return np.asarray(self._finished.pop(request_index), np.int32)

    def output_text(self, request_index: int) -> str:
        """A finished request's text, until its tokens are taken.

        Raises ValueError where there is no detokenizer, KeyError for a request that goes on.
        """
        if DETOKENIZERS.load(self.config.detokenizer) is None:
            raise ValueError("no text: the engine runs with --axis detokenizer=none")
        text = self._ended[request_index].text
        assert text is not None
        return text.decode(errors="replace") if isinstance(text, bytes) else text

    def output_logprobs(self, request_index: int) -> RequestLogprobs:
        """A finished request's log-probabilities, until its tokens are taken.

        Raises ValueError where none were asked for, KeyError for a request that goes on.
        """
        if LOGPROBS.load(parse_logprobs(self.config.logprobs).shape) is None:
            raise ValueError("no log-probabilities: the engine runs with --axis logprobs=none")
        logprobs = self._ended[request_index].logprobs
        assert logprobs is not None
        return logprobs

    def request_stream(self, request_index: int) -> "RequestOutputCollector":
        """The stream of a request that runs, or whose tokens have not been taken yet.

        Raises KeyError for any other, ValueError where requests have none.
        """
        if self._streams is None:
            raise ValueError("no streams: the engine runs with --axis request-streams=none")
        return self._streams[request_index]

    def handoff_bytes(self, sampled: Any) -> int:
        """Memory of `StepOutput.sampled`, padding and Python objects included."""
        num_bytes: int = self._handoff_bytes(sampled)
        return num_bytes

    def collective_rpc(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call ``function(process, *args)`` here, then in the worker process if there is one."""
        return [
            function(self, *args),
            *self._worker.rpc(function, args),
            *self._processing.rpc(function, args),
        ]

    def read_back(self) -> EngineState:
        """What output processing has set in the interpreter, and the room that a GPU has."""
        found = dict(self._processing.settings())
        if self._num_fit:
            found |= {"num_kv_tokens": self._num_kv_tokens, FIT: self._num_fit}
        return EngineState(found, {})

    def shutdown(self) -> None:
        """End the engine's other threads and processes; safe to call twice."""
        self._processing.shutdown()
        self._worker.shutdown()
