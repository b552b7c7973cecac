"""What both engines check of a configuration, and what they ask of vLLM alike."""

from dataclasses import fields, replace
from typing import Any

from engines.builtin.logprobs import parse_logprobs
from engines.builtin.registries import OUTPUT_PROCESSING, SCHEDULING_POLICIES, WORKERS
from engines.protocol import ContradictionError, EngineConfig
from engines.vllm.features import engine_arguments, features_of
from engines.vllm.model_folder import model_folder

_ASYNC_SCHEDULER = "vllm.v1.core.sched.async_scheduler.AsyncScheduler"
_DETOKENIZERS = ("none", "decode_stream")
_ENGINE_CORES = ("in-process", "process")
_FRONT_ENDS = ("llm", "async")
_MODES = ("inline", "overlapped")
_SCHEDULER = "vllm.v1.core.sched.scheduler.Scheduler"
_SETUPS = ("lean", "shipped", "served")


def check_arguments(config: EngineConfig) -> None:
    """Raise ValueError where processes, model or batch are none that vLLM could have.

    ContradictionError where they do not go together.
    """
    OUTPUT_PROCESSING.check(config.output_processing)
    WORKERS.check(config.worker)
    SCHEDULING_POLICIES.check(config.scheduling_policy)
    if config.engine_core not in _ENGINE_CORES:
        raise ValueError(
            f"engine core {config.engine_core!r}: must be {' or '.join(_ENGINE_CORES)}"
        )
    if config.front_end not in _FRONT_ENDS:
        raise ValueError(f"--axis front-end={config.front_end}: must be {' or '.join(_FRONT_ENDS)}")
    if config.detokenizer not in _DETOKENIZERS:
        raise ValueError(
            f"--axis detokenizer={config.detokenizer}: vLLM has its own alone; use "
            "decode_stream or none"
        )
    if parse_logprobs(config.logprobs).shape not in ("none", "lists"):
        raise ValueError(f"--axis logprobs={config.logprobs}: vLLM makes dictionaries; use lists:K")
    if config.setup not in _SETUPS:
        raise ValueError(f"--axis setup={config.setup}: must be lean, shipped or served")
    features_of(config)
    model_folder(config.model)
    if config.max_num_seqs < 1:
        raise ValueError(f"batch size {config.max_num_seqs}: must be at least 1")
    if why := _contradiction(config):
        raise ContradictionError(why)


def set_up(config: EngineConfig) -> EngineConfig:
    """With what setup and features settle: whatever wants text has it, and each of a request's
    samples has a place in the batch.
    """
    features, is_served = features_of(config), config.setup == "served"
    has_text = features.needs_text or is_served
    return replace(
        config,
        log_stats=config.log_stats or takes_defaults(config),
        front_end="async" if is_served else config.front_end,
        detokenizer="decode_stream" if has_text else config.detokenizer,
        max_num_seqs=config.max_num_seqs * features.samples,
    )


def takes_defaults(config: EngineConfig) -> bool:
    """Whether the release decides of prefix caching and async scheduling."""
    return config.setup != "lean"


def may_be_async(config: EngineConfig) -> bool:
    """Whether the next step may be scheduled before the tokens of this one are there."""
    return takes_defaults(config) or config.output_processing == "overlapped"


def has_messages(config: EngineConfig) -> bool:
    """Whether workers are processes of their own, and the engine core is not."""
    return config.worker == "process" and config.engine_core == "in-process"


def _contradiction(config: EngineConfig) -> str:
    """What no vLLM can do."""
    if takes_defaults(config) and (asked := _asked_switches(config)):
        return (
            f"--axis setup={config.setup} with {asked}: the release decides that; leave one of the "
            "two out, or "
            "ask for --axis setup=lean"
        )
    if config.setup == "served" and config.engine_core == "process":
        return (
            "--axis setup=served with --axis engine-core=process: it counts front end and engine "
            "core in one process; leave engine-core out, or ask for --axis setup=shipped "
            "--axis front-end=async"
        )
    is_alone = config.engine_core == "in-process" and config.setup != "served"
    if config.front_end == "async" and is_alone:
        return (
            "--axis front-end=async with its engine core in one process: vLLM's AsyncLLM has it in "
            "another; add --axis engine-core=process"
        )
    if config.tensor_parallel_size > 1 and config.worker != "process":
        return (
            f"--axis tensor-parallel={config.tensor_parallel_size} in one process: each rank "
            "has its "
            "own; use --worker process"
        )
    if config.output_processing not in _MODES:
        return (
            f"--output-processing {config.output_processing}: vLLM has {' and '.join(_MODES)}; "
            "--axis engine-core=process puts its front end and its engine core apart"
        )
    return ""


def _asked_switches(config: EngineConfig) -> str:
    asked = {
        "--output-processing ": config.output_processing != "inline" and config.output_processing,
        "--axis prefix-caching=": config.enable_prefix_caching and "on",
    }
    return " and ".join(f"{flag}{value}" for flag, value in asked.items() if value)


def common_arguments(
    config: EngineConfig, engine_args_class: Any, tokenizer_folder: str
) -> dict[str, Any]:
    """Arguments of ``EngineArgs`` that say nothing of device and model."""
    has_text = config.detokenizer != "none"
    asked = {"enable_prefix_caching": config.enable_prefix_caching}
    return {
        "model": str(model_folder(config.model)),
        "skip_tokenizer_init": not has_text,
        **({"tokenizer": tokenizer_folder} if has_text else {}),
        "generation_config": "vllm",
        **({} if takes_defaults(config) else asked),
        "enable_chunked_prefill": True,
        "scheduling_policy": config.scheduling_policy,
        "disable_log_stats": not config.log_stats,
        "max_model_len": config.max_model_len,
        "max_num_seqs": config.max_num_seqs,
        "max_num_batched_tokens": config.max_num_batched_tokens,
        "tensor_parallel_size": config.tensor_parallel_size,
        "distributed_executor_backend": "mp" if config.worker == "process" else "uni",
        **scheduling(config, engine_args_class),
        **engine_arguments(features_of(config)),
    }


def scheduling(config: EngineConfig, engine_args_class: Any) -> dict[str, Any]:
    """Sync or async scheduling, in the words of the release; nothing where it is the default."""
    defaults = {field.name: field.default for field in fields(engine_args_class)}
    is_async = config.output_processing == "overlapped"
    if is_async and "async_scheduling" not in defaults:
        raise ValueError("this release of vLLM has no async scheduling; leave `overlapped` out")
    arguments: dict[str, Any] = {} if takes_defaults(config) else {"async_scheduling": is_async}
    # Up to 0.11.0 the default is a scheduler of the engine before this one.
    if ".v1." not in str(defaults.get("scheduler_cls") or ".v1."):
        arguments["scheduler_cls"] = _ASYNC_SCHEDULER if is_async else _SCHEDULER
    return arguments
