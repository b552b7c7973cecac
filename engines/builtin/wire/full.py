"""Everything about every request in every step, pickled: the baseline of vLLM #6241.

The worker keeps nothing of a request, so its sampling parameters, its prompt, its output and its
block table cross again with each token.
"""

import pickle
from collections import deque
from itertools import chain
from math import log1p
from typing import Any

import numpy as np

from engines.builtin.registries import REPRESENTATIONS
from engines.builtin.representations import PLACEHOLDER_TOKEN_ID, Representation, ragged_mask
from engines.builtin.wire import Buffer, Stateless
from engines.builtin.wire.unpickle import unpickle
from engines.builtin.wire.v0_messages import (
    CompletionSequenceGroupOutput,
    ExecuteModelRequest,
    Logprob,
    SamplerOutput,
    SamplingParams,
    SequenceData,
    SequenceGroupMetadata,
    SequenceOutput,
    SequenceStage,
)
from engines.builtin.worker import NOBODY, ModelRunnerOutput, NewRequests, SchedulerOutput
from engines.pickle_fields import pickle_fields
from engines.protocol import EngineConfig, Int32Array, Sampling


class _Sequence:
    """What vLLM's scheduler knew of a request, by its row, which is its sequence's number."""

    def __init__(
        self,
        row: int,
        request_index: int,
        token_ids: Int32Array,
        num_computed: int,
        num_output: int,
        sampling: Sampling | None,
    ) -> None:
        tokens = token_ids.tolist()
        prompt = len(tokens) - num_output
        self.data = SequenceData(tokens[:prompt], tokens[prompt:], 0.0, num_computed)
        self.num_prefill = len(tokens)
        self.block_table: list[int] = []
        params = SamplingParams()
        if sampling is not None:  # and only then is top-k not negative
            seed = None if sampling.seed < 0 else sampling.seed
            params = SamplingParams(
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                top_k=sampling.top_k,
                seed=seed,
            )
        self.metadata = SequenceGroupMetadata(
            str(request_index), True, {row: self.data}, params, {row: self.block_table}
        )

    def send(self, num_scheduled: int, samples: bool, is_new: bool) -> SequenceGroupMetadata:
        """It as this step sends it; what it computes is counted once that has been encoded."""
        data, metadata = self.data, self.metadata
        metadata.is_prompt = data._num_computed_tokens < self.num_prefill
        data._stage = SequenceStage.PREFILL if metadata.is_prompt else SequenceStage.DECODE
        metadata.computed_block_nums = [] if is_new else None
        metadata._token_chunk_size, metadata.do_sample = num_scheduled, samples
        return metadata


class Full(Stateless):
    """The scheduler's end has what vLLM's scheduler had; the worker's end keeps nothing but who is
    new, which its runner must be told.
    """

    step_fields = tokens_fields = staticmethod(pickle_fields)

    def __init__(self, config: EngineConfig) -> None:
        self._sequences: list[_Sequence | None] = [None] * config.max_num_seqs
        self._under_way: deque[list[_Sequence]] = deque()
        self._representation: Representation = REPRESENTATIONS.load(config.representation)()

    def encode_step(self, step: SchedulerOutput) -> list[Buffer]:
        """An `ExecuteModelRequest`."""
        new = step.new
        for row, index, tokens, computed, num_output, sampling in zip(
            new.rows,
            new.request_index,
            new.token_ids,
            new.num_computed,
            new.num_output,
            new.sampling or [None] * len(new.rows),
            strict=True,
        ):
            self._sequences[row] = _Sequence(row, index, tokens, computed, num_output, sampling)
        for row, block in zip(step.block_rows.tolist(), step.block_ids.tolist(), strict=True):
            self._sequence(row).block_table.append(block)
        samples = [True] * len(step.rows) if step.samples is None else step.samples.tolist()
        rows, counts, taken = step.rows.tolist(), step.num_scheduled.tolist(), set(new.rows)
        groups = [
            self._sequence(row).send(count, does, row in taken)
            for row, count, does in zip(rows, counts, samples, strict=True)
        ]
        message = pickle.dumps(ExecuteModelRequest(groups, running_queue_size=len(groups)), 5)
        for row, count in zip(rows, counts, strict=True):
            self._sequence(row).data._num_computed_tokens += count
        self._under_way.append([self._sequence(row) for row in rows])
        return [message]

    def decode_step(self, data: memoryview) -> SchedulerOutput:
        """Of the whole block tables all entries again."""
        groups = unpickle(data).seq_group_metadata_list
        rows, tables, news = [], [], []
        for group in groups:
            ((row, sequence),) = group.seq_data.items()
            rows.append(row)
            tables.append(group.block_tables[row])
            if group.computed_block_nums is not None:
                tokens = sequence.prompt_token_ids + sequence.output_token_ids
                token_ids = np.array(tokens, np.int32)
                computed, num_output = sequence._num_computed_tokens, len(sequence.output_token_ids)
                own = _own(group.sampling_params)
                news.append((row, int(group.request_id), token_ids, computed, num_output, own))
        lengths = [len(table) for table in tables]
        samples = np.array([group.do_sample for group in groups], np.bool_)
        return SchedulerOutput(
            np.array(rows, np.int32),
            np.array([group._token_chunk_size for group in groups], np.int32),
            None if samples.all() else samples,
            _new_requests(news) if news else NOBODY,
            np.repeat(np.array(rows, np.int32), lengths),
            np.concatenate([np.arange(length, dtype=np.int32) for length in lengths]),
            np.array([block for table in tables for block in table], np.int32),
        )

    def encode_tokens(self, output: ModelRunnerOutput) -> list[Buffer]:
        """A `SamplerOutput`, and beside it what vLLM's had not: time on the device."""
        each = self._representation.per_request(output.sampled)
        outputs = [
            CompletionSequenceGroupOutput(
                [
                    SequenceOutput(place, token, {token: Logprob(_logprob(token))})
                    for token in _listed(tokens)
                ]
            )
            for place, tokens in enumerate(each)
        ]
        sampler_output = SamplerOutput(outputs)
        timing = output.device_ns, output.late_ns, output.device_seconds
        return [pickle.dumps((sampler_output, timing, output.logprobs), 5)]

    def decode_tokens(self, data: memoryview) -> ModelRunnerOutput:
        """The tokens, in the engine's representation."""
        sampler_output, timing, logprobs = unpickle(data)
        tokens = [
            [sample.output_token for sample in output.samples] for output in sampler_output.outputs
        ]
        self._append(tokens)
        counts = np.fromiter(map(len, tokens), np.int32, len(tokens))
        host = np.full((len(tokens), max(1, counts.max())), PLACEHOLDER_TOKEN_ID, np.int32)
        host[ragged_mask(counts, host.shape[1])] = list(chain.from_iterable(tokens))
        num_tokens = None if (counts == 1).all() else counts
        sampled = self._representation.from_device(host, num_tokens)
        device_ns, late_ns, device_seconds = timing
        return ModelRunnerOutput(sampled, device_ns, late_ns, device_seconds, logprobs)

    def tokens_stay(self, output: ModelRunnerOutput) -> None:
        """As if they had crossed."""
        self._append(list(map(_listed, self._representation.per_request(output.sampled))))

    def _append(self, tokens: list[list[int]]) -> None:
        """To the sequences of the oldest step under way."""
        for sequence, sampled in zip(self._under_way.popleft(), tokens, strict=True):
            sequence.data.output_token_ids += sampled
            sequence.data.cumulative_logprob += sum(map(_logprob, sampled))

    def _sequence(self, row: int) -> _Sequence:
        sequence = self._sequences[row]
        assert sequence is not None
        return sequence


def _own(params: SamplingParams) -> Sampling | None:
    if params.top_k < 0:
        return None
    seed = -1 if params.seed is None else params.seed
    return Sampling(params.temperature, params.top_k, params.top_p, seed)


def _new_requests(news: list[tuple[Any, ...]]) -> NewRequests:
    *columns, sampling = map(list, zip(*news, strict=True))
    return NewRequests(*columns)._replace(sampling=sampling if any(sampling) else ())


def _logprob(token: int) -> float:
    """Made up, but another for each token as a model's is: eight bytes that are never the same."""
    return -log1p(token)


def _listed(tokens: int | list[int]) -> list[int]:
    return [tokens] if isinstance(tokens, int) else tokens
