"""vLLM's own host path, release by release, with no GPU: all of vLLM but the forward pass."""

from dataclasses import replace
from typing import Any

from engines.builtin.block_pool import num_gpu_blocks
from engines.builtin.device.choice import complete_device, device_class
from engines.builtin.registries import DEVICES, REPRESENTATIONS
from engines.protocol import SCRIPT, ContradictionError, EngineConfig, Traits
from engines.vllm import arguments
from engines.vllm.engine import VllmEngine
from engines.vllm.model_folder import architectures, model_folder
from engines.vllm.settings import NATIVE

_WAYS: tuple[dict[str, str | int], ...] = (
    {"prefix_caching": "on"},
    {"logprobs": "lists:2"},
    {"detokenizer": "decode_stream"},
    {"log_stats": "on"},
    {"features": "stop"},
    {"features": "samples:2"},
    {"features": "grammar"},
    {"features": "lora:2"},
    {"features": "kv-connector"},
    {"scheduling_policy": "priority"},
    {"max_num_batched_tokens": 64},
    {"num_gpu_blocks_override": 64},
    {"output_processing": "overlapped"},
    {"setup": "shipped"},
    {"setup": "served"},
    {"front_end": "async", "engine_core": "process"},
    {"engine_core": "process"},
    {"worker": "process"},
)


class HostPathEngine(VllmEngine):
    """Input processor, scheduler, block manager, engine core and output processor of vLLM.

    Ours are the platform, the worker behind vLLM's executor, and the device in it.
    """

    host_path = True
    script = SCRIPT
    has_wait_hook = True
    axes = VllmEngine.axes | {
        "tensor_parallel",
        "detokenizer",
        "tokenizer",
        "logprobs",
        "features",
        "front_end",
        "log_stats",
        "setup",
    }

    @staticmethod
    def complete(config: EngineConfig) -> EngineConfig:
        """Fill in what was left open.

        Raises ValueError where a part is unknown or a number impossible, ContradictionError where
        parts do not go together.
        """
        representation = config.representation or NATIVE
        config = replace(complete_device(config), representation=representation)
        if device_class(config).has_model:
            raise ValueError(
                f"device {config.device!r}: vLLM's host path runs without a model; use null or "
                "modelled, or --engine vllm for all of it"
            )
        device_class(config).check(config)
        if representation != NATIVE:
            REPRESENTATIONS.load(representation)
        arguments.check_arguments(config)
        if max(config.num_accepted) > 1 and (why := _against_drafts(config)):
            raise ContradictionError(f"several tokens per step with {why}")
        if representation != NATIVE and not REPRESENTATIONS.load(representation).owns_memory:
            raise ContradictionError(
                f"{representation}: it does not outlive the step, and vLLM may keep it"
            )
        return config

    @staticmethod
    def traits(config: EngineConfig) -> Traits:
        """It forks never: it may freeze the heap that it finds, and takes most of its time to
        import.
        """
        is_null, is_inline = config.device == "null", config.output_processing == "inline"
        is_one = config.worker == config.engine_core == "in-process"
        return Traits(
            is_exact=is_one and is_null,
            takes_gpu=False,
            # Else a step is under way between two steps, and takes its time.
            can_pause=is_null or is_inline,
            has_messages=arguments.has_messages(config),
            outlives_fork=config.setup != "served",
            trace_every=16,
            ways=_WAYS,
        )

    def is_exact(self, config: EngineConfig) -> bool:
        """As its traits have it."""
        return self.traits(config).is_exact

    def executor_class(self, config: EngineConfig) -> Any:
        """Ours where something is to be seen or turned back between scheduler and worker."""
        from vllm.v1.executor.abstract import UniProcExecutor

        from engines.vllm import executor
        from engines.vllm.dialect import SCHEDULER_TAKES, representation_of

        if config.worker == "process":
            return executor.HostPathMultiproc
        if representation_of(config.representation) == SCHEDULER_TAKES:
            return UniProcExecutor  # the worker is here to stamp the phases
        return executor.HostPathUniProc

    def engine_args(self, config: EngineConfig, engine_args_class: Any) -> dict[str, Any]:
        """All that a server would set, with as many blocks as our device says."""
        return host_path_arguments(
            config,
            engine_args_class,
            device_log=self.device_log_path,
            tokenizer_folder=self.tokenizer_folder,
        )


def _against_drafts(config: EngineConfig) -> str:
    """What scripted drafts do not go with, and what to do."""
    if config.logprobs != "none":
        return (
            f"--axis logprobs={config.logprobs}: they are scripted for one token per step; leave "
            f"it out"
        )
    return ""


def host_path_arguments(
    config: EngineConfig, engine_args_class: Any, *, device_log: str, tokenizer_folder: str
) -> dict[str, Any]:
    """Arguments of vLLM's ``EngineArgs``, of whatever front end."""
    from engines.vllm.dialect import representation_of
    from engines.vllm.empty_model import ARCHITECTURE
    from engines.vllm.settings import additional_config

    config = replace(config, representation=representation_of(config.representation))
    most_drafts = max(config.num_accepted) - 1
    return arguments.common_arguments(config, engine_args_class, tokenizer_folder) | {
        "load_format": "dummy",
        "enforce_eager": True,
        "swap_space": 0,  # GiB a rank; releases that have it refuse more than there is
        "block_size": config.block_size,
        "num_gpu_blocks_override": num_blocks(config),
        "hf_overrides": {
            # The model's own stay behind ours, for vLLM decides some branches by their names.
            "architectures": [ARCHITECTURE, *architectures(model_folder(config.model))],
            "max_position_embeddings": config.max_model_len,
        },
        "additional_config": additional_config(config, device_log),
        **({"speculative_config": _speculative(config, most_drafts)} if most_drafts else {}),
    }


def _speculative(config: EngineConfig, most_drafts: int) -> dict[str, Any]:
    """The way of vLLM to speculate that loads no model; our worker drafts in its place.

    That of a GPU goes with async scheduling: drafts stay where they were made.
    """
    return {
        "method": "ngram_gpu" if arguments.may_be_async(config) else "ngram",
        "num_speculative_tokens": most_drafts,
        "prompt_lookup_min": 1,
        "prompt_lookup_max": 2,
    }


def num_blocks(config: EngineConfig) -> int:
    """Blocks of the device's KV cache, and the one that vLLM keeps as null."""
    return 1 + num_gpu_blocks(DEVICES.load(config.device).num_kv_tokens(config), config)
