"""What vLLM 0.32's engine core makes of a step: `Scheduler.update_from_output`, request by request.

A model of that release, frozen there: the objects and loops of the path that a text request without
drafts, encoders or connectors takes. Each function names the one of vLLM's that it stands for.
"""

from collections import defaultdict
from collections.abc import Iterable
from enum import IntEnum
from itertools import compress
from typing import Any

import msgspec
import numpy as np

from engines.builtin.device.choice import eos_token_ids
from engines.builtin.registries import REPRESENTATIONS
from engines.builtin.representations import Representation
from engines.builtin.request_table import Request, RequestTable
from engines.builtin.token_store import Taken, stop_token_ids
from engines.protocol import BoolArray, EngineConfig, FinishReason, Int32Array, SamplingParams


class CoreOutput(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    """`EngineCoreOutput`: what crosses to the front end of a request; not tracked."""

    request_id: str
    new_token_ids: list[int]
    new_logprobs: Any = None
    new_prompt_logprobs_tensors: Any = None
    pooling_output: Any = None
    finish_reason: FinishReason | None = None
    stop_reason: int | str | None = None
    events: list[Any] | None = None
    kv_transfer_params: dict[str, Any] | None = None
    ec_transfer_params: dict[str, Any] | None = None
    trace_headers: dict[str, str] | None = None
    prefill_stats: Any = None
    routed_experts: Any = None
    num_nans_in_logits: int = 0
    new_sampling_mask: Any = None
    spec_decode_metrics: Any = None
    prompt_token_id_logprobs: Any = None


class _Status(IntEnum):
    """`RequestStatus`."""

    RUNNING = 1
    FINISHED_STOPPED = 2
    FINISHED_LENGTH_CAPPED = 3


_REASONS = {
    _Status.FINISHED_STOPPED: FinishReason.STOP,
    _Status.FINISHED_LENGTH_CAPPED: FinishReason.LENGTH,
}


class _ReadOnly:
    """`ConstantList`: what the scheduler reads a request's tokens through."""

    def __init__(self, tokens: list[int]) -> None:
        self._tokens = tokens

    def __getitem__(self, place: int) -> int:
        return self._tokens[place]


class _CoreRequest:
    """`Request`: two lists of the same tokens, and a field for each thing a request could ask."""

    def __init__(self, request: Request, stops: frozenset[int]) -> None:
        self.request_id = str(request.request_index)
        self.client_index = 0
        self.sampling_params: SamplingParams = request.params
        self.pooling_params = None
        self.max_tokens = request.params.max_tokens
        self.stops = stops
        self.status = _Status.RUNNING
        self.events: list[object] = []
        self.stop_reason: int | str | None = None
        self.num_in_flight_tokens = 0
        self.num_stale_output_tokens = 0
        self.num_output_placeholders = 0
        self.num_computed_tokens = 0
        self.num_nans_in_logits = 0
        self.mm_features: list[object] = []
        self.structured_output_request = None
        self.prefill_stats: object | None = None
        self.spec_decode_metrics = None
        self.trace_headers = None
        self.block_hasher = None
        self.own_tokens: list[int] = request.output_token_ids.tolist()
        self._all_token_ids: list[int] = request.prompt_token_ids.tolist() + self.own_tokens
        self.output_token_ids = _ReadOnly(self.own_tokens)

    @property
    def num_tokens(self) -> int:
        """`Request.num_tokens`."""
        return len(self._all_token_ids)

    @property
    def num_output_tokens(self) -> int:
        """`Request.num_output_tokens`."""
        return len(self.own_tokens)

    @property
    def has_encoder_inputs(self) -> bool:
        """`Request.has_encoder_inputs`."""
        return len(self.mm_features) > 0

    def is_finished(self) -> bool:
        """`Request.is_finished`."""
        return self.status > _Status.RUNNING

    def append_output_token_ids(self, token_id: int) -> None:
        """`Request.append_output_token_ids`."""
        if isinstance(token_id, int):
            self.own_tokens.append(token_id)
            self._all_token_ids.append(token_id)
        self.update_block_hashes()

    def update_block_hashes(self) -> None:
        """`Request.update_block_hashes`: block hashes are the built-in scheduler's here."""
        assert self.block_hasher is None

    def take_events(self) -> list[object] | None:
        """`Request.take_events`."""
        if not self.events:
            return None
        events, self.events = self.events, []
        return events

    def take_prefill_stats(self) -> object | None:
        """`Request.take_prefill_stats`."""
        if self.prefill_stats is None:
            return None
        stats, self.prefill_stats = self.prefill_stats, None
        return stats


class CoreRequests:
    """``Taken.tokens``: a row's `CoreOutput`, or None where it got no token."""

    def __init__(self, config: EngineConfig, table: RequestTable) -> None:
        self._representation: Representation = REPRESENTATIONS.load(config.representation)()
        self._table = table
        self._rows: list[_CoreRequest | None] = [None] * config.max_num_seqs
        self._requests: dict[str, _CoreRequest] = {}
        self._eos_token_ids = eos_token_ids(config)
        self._max_model_len = config.max_model_len

    def admit(self, row: int, request: Request) -> None:
        """`Request.from_engine_core_request`."""
        stops = frozenset(stop_token_ids(request.params, self._eos_token_ids))
        made = _CoreRequest(request, stops)
        self._rows[row] = self._requests[made.request_id] = made

    def append(self, rows: Int32Array, sampled: object, valid: BoolArray | None) -> Taken:
        """`Scheduler.update_from_output`, between what is the scheduler's own and the runner's."""
        each: Iterable[int | list[int]] = self._representation.per_request(sampled)
        sampled_token_ids = [[ids] if isinstance(ids, int) else ids for ids in each]
        num_dropped = 0
        if valid is not None:
            num_dropped = sum(map(len, compress(sampled_token_ids, (~valid).tolist())))
            sampled_token_ids = list(compress(sampled_token_ids, valid.tolist()))
        num_sampled = np.fromiter(map(len, sampled_token_ids), np.int32, len(sampled_token_ids))
        req_ids = (self._running(row).request_id for row in rows.tolist())
        num_scheduled_tokens = dict(zip(req_ids, num_sampled.tolist(), strict=True))
        outputs, finished, reasons = self._update_from_output(
            num_scheduled_tokens, sampled_token_ids
        )
        num_taken = (0 if each is None else len(each.new_token_ids) for each in outputs)
        return Taken(
            num_sampled,
            np.fromiter(num_taken, np.int32, len(outputs)),
            np.array(finished, np.int32),
            np.array(reasons, np.int8),
            outputs,
            num_dropped,
        )

    def _update_from_output(
        self, num_scheduled_tokens: dict[str, int], sampled_token_ids: list[list[int]]
    ) -> tuple[list[CoreOutput | None], list[int], list[FinishReason]]:
        """`Scheduler.update_from_output`: outputs by row, who has ended, and why."""
        requests = self._requests
        req_id_to_index = {req_id: index for index, req_id in enumerate(num_scheduled_tokens)}
        no_logprobs: dict[str, object] = {}
        outputs: dict[int, list[CoreOutput | None]] = defaultdict(list)
        finished: list[int] = []
        reasons: list[FinishReason] = []
        for req_id, num_tokens_scheduled in num_scheduled_tokens.items():
            request = requests.get(req_id)
            assert request is not None
            assert not request.is_finished()
            request.num_in_flight_tokens -= num_tokens_scheduled
            output_is_stale = request.num_stale_output_tokens > 0
            req_index = req_id_to_index[req_id]
            new_token_ids = sampled_token_ids[req_index] if sampled_token_ids else []
            assert not request.has_encoder_inputs
            stopped = False
            new_logprobs = new_sampling_mask = None
            status_before_stop = request.status
            if new_token_ids:
                has_placeholders = request.num_output_placeholders > 0
                new_token_ids, stopped = self._update_request_with_output(
                    request, new_token_ids, is_stale=output_is_stale
                )
                assert not (
                    not output_is_stale
                    and status_before_stop == _Status.RUNNING
                    and has_placeholders
                )
            if new_token_ids and not self._accept_tokens(request, new_token_ids):
                stopped = True
            should_emit_output = bool(new_token_ids or stopped)
            prefill_stats = None
            if should_emit_output:
                prefill_stats = request.take_prefill_stats()
            finish_reason = None
            if stopped:
                finish_reason = _REASONS[request.status]
                finished.append(req_index)
                reasons.append(finish_reason)
            prompt_logprobs = no_logprobs.get(req_id)
            prompt_token_id_logprobs = no_logprobs.get(req_id)
            if should_emit_output:
                outputs[request.client_index].append(
                    CoreOutput(
                        request_id=req_id,
                        new_token_ids=new_token_ids,
                        finish_reason=finish_reason,
                        new_logprobs=new_logprobs,
                        new_sampling_mask=new_sampling_mask,
                        new_prompt_logprobs_tensors=prompt_logprobs,
                        prompt_token_id_logprobs=prompt_token_id_logprobs,
                        pooling_output=None,
                        stop_reason=request.stop_reason,
                        events=request.take_events(),
                        prefill_stats=prefill_stats,
                        spec_decode_metrics=None,
                        kv_transfer_params=None,
                        ec_transfer_params=None,
                        trace_headers=request.trace_headers,
                        routed_experts=None,
                        num_nans_in_logits=request.num_nans_in_logits,
                    )
                )
            else:
                outputs[request.client_index].append(None)
        return outputs[0], finished, reasons

    def _update_request_with_output(
        self, request: _CoreRequest, new_token_ids: list[int], is_stale: bool = False
    ) -> tuple[list[int], bool]:
        """`Scheduler._update_request_with_output`."""
        stopped = False
        for num_new, token_id in enumerate(new_token_ids, 1):
            request.append_output_token_ids(token_id)
            stopped = _check_stop(request, self._max_model_len)
            if stopped:
                if num_new < len(new_token_ids):
                    new_token_ids = new_token_ids[:num_new]
                break
        if not is_stale and request.num_output_placeholders > 0:
            request.num_output_placeholders -= len(new_token_ids)
        return new_token_ids, stopped

    def _accept_tokens(self, request: _CoreRequest, new_token_ids: list[int]) -> bool:
        """`StructuredOutputManager.accept_tokens`, of a request that has no grammar."""
        return request.structured_output_request is None

    def _running(self, row: int) -> _CoreRequest:
        request = self._rows[row]
        assert request is not None
        return request

    def token_ids(self, row: int, start: int) -> Int32Array:
        """Copied from the list."""
        return np.array(self._running(row).own_tokens[start:], np.int32)

    def retire(self, row: int) -> list[int]:
        """`Scheduler._free_request`, as far as the request itself goes."""
        request = self._running(row)
        self._rows[row] = None
        del self._requests[request.request_id]
        return request.own_tokens


def _check_stop(request: _CoreRequest, max_model_len: int) -> bool:
    """`check_stop`; before ``min_tokens`` vLLM's sampler lets no stop token through."""
    assert not request.pooling_params
    params = request.sampling_params
    last_token_id = request.output_token_ids[-1]
    if last_token_id in request.stops and request.num_output_tokens > params.min_tokens:
        request.status = _Status.FINISHED_STOPPED
        request.stop_reason = last_token_id
        return True
    if request.num_tokens > max_model_len or request.num_output_tokens >= request.max_tokens:
        request.status = _Status.FINISHED_LENGTH_CAPPED
        return True
    return False
