"""The engine that a cell describes, in the engine's own words."""

from dataclasses import replace

from engines.protocol import EngineConfig
from engines.vocabulary import read_vocabulary
from harness.trial.spec import Cell
from workloads.schedule import Schedule


def engine_config(cell: Cell, schedule: Schedule) -> EngineConfig:
    """The engine that a cell describes, sized for a schedule."""
    tokens_per_step = int(schedule.num_accepted.max())
    # A budget below the batch would leave rows standing in every decode step.
    budget = cell.max_num_batched_tokens or max(8192, cell.batch_size * tokens_per_step)
    vocabulary = read_vocabulary(cell.tokenizer)
    return replace(
        unsized_config(cell),
        max_model_len=cell.max_model_len or schedule.max_model_len,
        max_num_batched_tokens=budget,
        seed=schedule.token_seed,
        num_accepted=tuple(schedule.num_accepted.tolist()),
        vocab_size=vocabulary.size,
        eos_token_id=vocabulary.eos_token_id,
    )


def unsized_config(cell: Cell) -> EngineConfig:
    """What a cell says of it by itself: no lengths, no tokens.

    Raises ValueError for a switch that is neither off nor on.
    """
    return EngineConfig(
        max_num_seqs=cell.batch_size,
        max_model_len=0,
        num_gpu_blocks_override=cell.num_gpu_blocks_override,
        enable_prefix_caching=_switched("--prefix-caching", cell.prefix_caching),
        scheduling_policy=cell.scheduling_policy,
        detokenizer=cell.detokenizer,
        tokenizer=cell.tokenizer,
        logprobs=cell.logprobs,
        request_streams=cell.request_streams,
        model=cell.model,
        dtype=cell.dtype,
        sampling=cell.sampling,
        enforce_eager=_switched("--enforce-eager", cell.enforce_eager),
        tensor_parallel_size=cell.tensor_parallel or 1,
        device=cell.device,
        device_profile=cell.device_profile,
        representation=cell.representation,
        delivery=cell.delivery,
        output_processing=cell.output_processing,
        worker=cell.worker,
        wire=cell.wire,
        engine_core=cell.engine_core,
    )


def _switched(flag: str, value: str) -> bool:
    if value not in ("off", "on"):
        raise ValueError(f"{flag} {value}: must be off or on")
    return value == "on"
