"""The objects and loops of vLLM 0.32: engine core, core outputs, front end, request outputs.

This is the front end, the other half of `token_store.vllm_v1`, frozen at the same release. Each
function names the one of vLLM's that it stands for.
"""

from dataclasses import dataclass
from typing import Any

from engines.builtin.delivery import Delivery
from engines.builtin.delivery.outputs import Output, add_output
from engines.builtin.delivery.per_request import EachLogprobs
from engines.builtin.delivery.stage import Processed, Stages, StepTokens, TextStage, end_early
from engines.builtin.logprobs import RequestLogprobs, load_logprobs
from engines.builtin.request_table import Request
from engines.builtin.text import Detokenizer, load_detokenizer
from engines.builtin.text.running_text import RunningText, TextUntilStop
from engines.builtin.token_store.vllm_v1 import CoreOutput, CoreRequests
from engines.protocol import EngineConfig, FinishReason


@dataclass
class V1Completion:
    """`CompletionOutput`, without slots as there."""

    index: int
    text: str
    token_ids: list[int]
    cumulative_logprob: float | None
    logprobs: RequestLogprobs | None
    routed_experts: object | None = None
    finish_reason: FinishReason | None = None
    stop_reason: int | str | None = None
    lora_request: object | None = None
    sampling_mask: object | None = None
    spec_decode_metrics: object | None = None
    weight_versions: list[object] | None = None


class V1Output:
    """`RequestOutput`; ``request_index`` in the place of its ``request_id``."""

    def __init__(
        self,
        request_index: int,
        prompt: str | None,
        prompt_token_ids: Any,
        prompt_logprobs: object | None,
        outputs: list[V1Completion],
        finished: bool,
        metrics: object | None = None,
        lora_request: object | None = None,
        encoder_prompt: str | None = None,
        encoder_prompt_token_ids: list[int] | None = None,
        num_cached_tokens: int | None = None,
        num_cache_creation_tokens: int | None = None,
        *,
        prompt_token_id_logprobs: object | None = None,
        kv_transfer_params: dict[str, Any] | None = None,
        ec_transfer_params: dict[str, Any] | None = None,
    ) -> None:
        self.request_index = request_index
        self.prompt = prompt
        self.prompt_token_ids = prompt_token_ids
        self.prompt_logprobs = prompt_logprobs
        self.prompt_token_id_logprobs = prompt_token_id_logprobs
        self.outputs = outputs
        self.finished = finished
        self.metrics = metrics
        self.lora_request = lora_request
        self.encoder_prompt = encoder_prompt
        self.encoder_prompt_token_ids = encoder_prompt_token_ids
        self.num_cached_tokens = num_cached_tokens
        self.num_cache_creation_tokens = num_cache_creation_tokens
        self.kv_transfer_params = kv_transfer_params
        self.ec_transfer_params = ec_transfer_params

    def add(self, later: Output) -> None:
        """`RequestOutput.add`."""
        add_output(self, later)


class _NoText:
    """`IncrementalDetokenizer` where nothing is decoded: the tokens are kept once more."""

    text = ""
    num_kept = 0

    def __init__(self) -> None:
        self.token_ids: list[int] = []

    def take(self, new_token_ids: list[int], reason: FinishReason | None) -> str:
        """Both of what a step asks of it."""
        self._update(new_token_ids, reason is FinishReason.STOP)
        return self._get_next_output_text(reason is not None, delta=True)

    def _update(self, new_token_ids: list[int], stop_terminated: bool) -> str | None:
        """`IncrementalDetokenizer.update`."""
        self.token_ids.extend(new_token_ids)
        return None

    def _get_next_output_text(self, finished: bool, delta: bool) -> str:
        """`IncrementalDetokenizer.get_next_output_text`."""
        return ""


class _Text(_NoText):
    """`BaseIncrementalDetokenizer`."""

    def __init__(self, text: RunningText) -> None:
        super().__init__()
        self._running = text

    def take(self, new_token_ids: list[int], reason: FinishReason | None) -> str:
        """Both; what comes behind a stop string is not kept."""
        text = self._running.take(new_token_ids, reason)
        self.num_kept = self._running.num_kept
        self.token_ids += new_token_ids[: self.num_kept] if self.num_kept else new_token_ids
        self.text = self._running.text
        return text


class _LogprobsProcessor:
    """`LogprobsProcessor`, asked in each step; what is asked for is gathered by `EachLogprobs`."""

    def __init__(self) -> None:
        self.prompt_logprobs: object | None = None
        self.prompt_token_id_logprobs: object | None = None
        self.cumulative_logprob = None

    def update_from_output(self, output: CoreOutput) -> None:
        """`LogprobsProcessor.update_from_output`."""
        assert output.new_logprobs is None
        assert output.new_prompt_logprobs_tensors is None
        assert output.prompt_token_id_logprobs is None

    def pop_prompt_logprobs(self) -> object | None:
        """`LogprobsProcessor.pop_prompt_logprobs`."""
        logprobs = self.prompt_logprobs
        if logprobs:
            self.prompt_logprobs = None
        return logprobs

    def pop_prompt_token_id_logprobs(self) -> object | None:
        """`LogprobsProcessor.pop_prompt_token_id_logprobs`."""
        logprobs = self.prompt_token_id_logprobs
        self.prompt_token_id_logprobs = None
        return logprobs


class _State:
    """`RequestState`."""

    def __init__(self, request: Request, detokenizer: _NoText) -> None:
        self.request_index = request.request_index
        self.prompt = None
        self.prompt_token_ids: Any = request.prompt_token_ids
        self.prompt_embeds: object | None = None
        self.parent_request = None
        self.lora_request = None
        self.queue = None
        self.stats = None
        self.is_prefilling = True
        self.is_delta = True
        self.is_final_only = False
        self.is_streaming_input = False
        self.num_cached_tokens = 0
        self.num_cache_creation_tokens = 0
        self.stream_interval = 1
        self.routed_experts_chunks: list[object] = []
        self.sampling_mask_chunks: list[object] = []
        self.spec_decode_metrics = None
        self.detokenizer = detokenizer
        self.logprobs_processor = _LogprobsProcessor()

    def make_request_output(
        self,
        new_token_ids: list[int],
        text: str,
        pooling_output: object | None,
        finish_reason: FinishReason | None,
        stop_reason: int | str | None,
        kv_transfer_params: dict[str, Any] | None = None,
        ec_transfer_params: dict[str, Any] | None = None,
    ) -> V1Output | None:
        """`RequestState.make_request_output`."""
        finished = finish_reason is not None
        if not finished and self.is_final_only:
            return None
        assert pooling_output is None
        assert self.stream_interval <= 1
        request_index = self.request_index
        completion = self._new_completion_output(new_token_ids, text, finish_reason, stop_reason)
        assert self.parent_request is None
        return self._new_request_output(
            request_index, [completion], finished, kv_transfer_params, ec_transfer_params
        )

    def _new_completion_output(
        self,
        token_ids: list[int],
        text: str,
        finish_reason: FinishReason | None,
        stop_reason: int | str | None,
    ) -> V1Completion:
        """`RequestState._new_completion_output`."""
        finished = finish_reason is not None
        if not self.is_delta:
            token_ids = self.detokenizer.token_ids
        sampling_mask = None
        assert not ((self.is_delta or finished) and self.sampling_mask_chunks)
        routed_experts = None
        assert not (finished and self.routed_experts_chunks)
        return V1Completion(
            index=0,
            text=text,
            token_ids=token_ids,
            routed_experts=routed_experts,
            sampling_mask=sampling_mask,
            logprobs=None,
            cumulative_logprob=self.logprobs_processor.cumulative_logprob,
            finish_reason=finish_reason if finished else None,
            stop_reason=stop_reason if finished else None,
            spec_decode_metrics=self.spec_decode_metrics if finished else None,
            weight_versions=None,
        )

    def _new_request_output(
        self,
        request_index: int,
        outputs: list[V1Completion],
        finished: bool,
        kv_transfer_params: dict[str, Any] | None,
        ec_transfer_params: dict[str, Any] | None,
    ) -> V1Output:
        """`RequestState._new_request_output`."""
        prompt_token_ids = self.prompt_token_ids
        assert not (prompt_token_ids is None and self.prompt_embeds is not None)
        if self.is_delta:
            prompt_logprobs = self.logprobs_processor.pop_prompt_logprobs()
            prompt_token_id_logprobs = self.logprobs_processor.pop_prompt_token_id_logprobs()
        else:
            prompt_logprobs = self.logprobs_processor.prompt_logprobs
            prompt_token_id_logprobs = self.logprobs_processor.prompt_token_id_logprobs
        return V1Output(
            request_index=request_index,
            lora_request=self.lora_request,
            prompt=self.prompt,
            prompt_token_ids=prompt_token_ids,
            prompt_logprobs=prompt_logprobs,
            prompt_token_id_logprobs=prompt_token_id_logprobs,
            outputs=outputs,
            finished=finished,
            kv_transfer_params=kv_transfer_params,
            ec_transfer_params=ec_transfer_params,
            num_cached_tokens=self.num_cached_tokens,
            num_cache_creation_tokens=self.num_cache_creation_tokens,
            metrics=self.stats,
        )


class V1Outputs(TextStage):
    """`OutputProcessor`."""

    def __init__(self, detokenizer: Detokenizer | None) -> None:
        self._detokenizer = detokenizer
        self._states: dict[str, _State] = {}
        self._in_slot: dict[int, _State] = {}

    def add(self, request: Request) -> None:
        """`OutputProcessor.add_request`."""
        detokenizer = self._detokenizer
        text = _NoText()
        if detokenizer is not None:
            make = TextUntilStop if request.params.stop else RunningText
            text = _Text(make(detokenizer, request.params))
        state = _State(request, text)
        self._in_slot[request.slot] = self._states[str(request.request_index)] = state

    def process(self, step: StepTokens, processed: Processed) -> None:
        """`OutputProcessor.process_outputs`."""
        request_outputs: list[Any] = []
        reqs_to_abort: list[int] = []
        num_kept: list[int] = []
        for place, core_output in enumerate(step.tokens):
            if core_output is None:
                continue
            state = self._states.get(core_output.request_id)
            if state is None:
                continue
            self._update_stats_from_output(state, core_output, None, None)
            new_token_ids = core_output.new_token_ids
            pooling_output = core_output.pooling_output
            finish_reason = core_output.finish_reason
            stop_reason = core_output.stop_reason
            kv_transfer_params = core_output.kv_transfer_params
            ec_transfer_params = core_output.ec_transfer_params
            assert core_output.routed_experts is None
            if state.is_prefilling:
                assert core_output.prefill_stats is None
                state.is_prefilling = False
            assert core_output.spec_decode_metrics is None
            text = ""
            if pooling_output is None:
                detokenizer = state.detokenizer
                text = detokenizer.take(new_token_ids, finish_reason)
                if detokenizer.num_kept:
                    reqs_to_abort.append(place)
                    num_kept.append(detokenizer.num_kept)
                    new_token_ids = new_token_ids[: detokenizer.num_kept]
                    finish_reason = FinishReason.STOP
                assert core_output.new_sampling_mask is None
                state.logprobs_processor.update_from_output(core_output)
            is_chunk_boundary = state.is_streaming_input and finish_reason is not None
            if request_output := state.make_request_output(
                new_token_ids,
                text,
                pooling_output,
                finish_reason,
                stop_reason,
                kv_transfer_params,
                ec_transfer_params,
            ):
                assert not is_chunk_boundary
                assert state.queue is None
                request_outputs.append(request_output)
        processed.outputs = request_outputs
        end_early(processed, reqs_to_abort, num_kept)

    def _update_stats_from_output(
        self,
        state: _State,
        core_output: CoreOutput,
        core_timestamp: float | None,
        iteration_stats: object | None,
    ) -> None:
        """`OutputProcessor._update_stats_from_output`, with statistics switched off."""
        if iteration_stats is None:
            return

    def text(self, slot: int) -> str:
        """A request's whole text."""
        return self._in_slot[slot].detokenizer.text

    def num_tokens(self, slot: int) -> int:
        """As many as it has decoded."""
        return len(self._in_slot[slot].detokenizer.token_ids)

    def remove(self, slot: int) -> None:
        """`OutputProcessor._finish_request`."""
        state = self._in_slot.pop(slot)
        del self._states[str(state.request_index)]


def vllm_v1_stages(config: EngineConfig) -> Stages:
    """One loop for objects and text, and one for log-probabilities where they are asked for."""
    detokenizer = load_detokenizer(config)
    shape = load_logprobs(config.logprobs)
    loop = V1Outputs(detokenizer)
    return Stages(
        None if detokenizer is None else loop, loop, None if shape is None else EachLogprobs(shape)
    )


VLLM_V1 = Delivery(False, list[CoreOutput | None], CoreRequests, vllm_v1_stages)
