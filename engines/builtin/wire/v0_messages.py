"""What vLLM 0.5 sent its workers and got back in a step, class by class and field by field.

Modelled on 0.5.1, the release of vLLM #6241; each class is named as vLLM's, and so are its fields.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any


class SequenceStage(IntEnum):
    """Whether a sequence's prompt is still being computed."""

    PREFILL = 1
    DECODE = 2


@dataclass
class SamplingParams:
    """As it is where nothing was asked for."""

    n: int = 1
    best_of: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    seed: int | None = None
    use_beam_search: bool = False
    length_penalty: float = 1.0
    early_stopping: bool = False
    stop: list[str] = field(default_factory=list)
    stop_token_ids: list[int] = field(default_factory=list)
    ignore_eos: bool = False
    max_tokens: int = 16
    min_tokens: int = 0
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    detokenize: bool = True
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    logits_processors: list[Any] | None = None
    include_stop_str_in_output: bool = False
    truncate_prompt_tokens: int | None = None
    output_text_buffer_length: int = 0
    all_stop_token_ids: set[int] = field(default_factory=set)


@dataclass
class SequenceData:
    """A sequence's tokens, all of them."""

    prompt_token_ids: list[int]
    output_token_ids: list[int]
    cumulative_logprob: float = 0.0
    _num_computed_tokens: int = 0
    _stage: SequenceStage = SequenceStage.PREFILL


@dataclass
class SequenceGroupState:
    """Of multi-step decoding."""

    generator: Any = None


@dataclass
class SequenceGroupMetadata:
    """A request as every step sent it; ``seq_data`` and ``block_tables`` by sequence number."""

    request_id: str
    is_prompt: bool
    seq_data: dict[int, SequenceData]
    sampling_params: SamplingParams
    block_tables: dict[int, list[int]]
    pooling_params: Any = None
    lora_request: Any = None
    computed_block_nums: list[int] | None = None
    multi_modal_data: Any = None
    state: SequenceGroupState = field(default_factory=SequenceGroupState)
    encoder_seq_data: Any = None
    cross_block_table: Any = None
    _token_chunk_size: int = 1
    do_sample: bool = True


@dataclass
class ExecuteModelRequest:
    """A step, to the workers."""

    seq_group_metadata_list: list[SequenceGroupMetadata]
    blocks_to_swap_in: list[tuple[int, int]] = field(default_factory=list)
    blocks_to_swap_out: list[tuple[int, int]] = field(default_factory=list)
    blocks_to_copy: list[tuple[int, int]] = field(default_factory=list)
    virtual_engine: int = 0
    num_lookahead_slots: int = 0
    running_queue_size: int = 0
    previous_hidden_states: Any = None
    num_steps: int = 1


@dataclass
class Logprob:
    """Of one token."""

    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


@dataclass
class SequenceOutput:
    """A sampled token."""

    parent_seq_id: int
    output_token: int
    logprobs: dict[int, Logprob]


@dataclass
class CompletionSequenceGroupOutput:
    """A request's."""

    samples: list[SequenceOutput]
    prompt_logprobs: Any = None


@dataclass
class SamplerOutput:
    """A step's, from the first worker."""

    outputs: list[CompletionSequenceGroupOutput]
    sampled_token_probs: Any = None
    logprobs: Any = None
    sampled_token_ids: Any = None
    spec_decode_worker_metrics: Any = None
