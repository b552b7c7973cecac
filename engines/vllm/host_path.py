"""vLLM's own host path, release by release, with no GPU: all of vLLM but the forward pass."""

from dataclasses import fields, replace
from typing import Any

from engines.builtin.device.profile import load_profile
from engines.builtin.registries import DEVICES, OUTPUT_PROCESSING, REPRESENTATIONS, WORKERS
from engines.protocol import EngineConfig
from engines.vllm.engine import VllmEngine
from engines.vllm.launch import launch
from engines.vllm.models import model_folder
from engines.vllm.settings import NATIVE

_ASYNC_SCHEDULER = "vllm.v1.core.sched.async_scheduler.AsyncScheduler"
_ENGINE_CORES = ("in-process", "process")
_SCHEDULER = "vllm.v1.core.sched.scheduler.Scheduler"


class HostPathEngine(VllmEngine):
    """Input processor, scheduler, block manager, engine core and output processor of vLLM.

    Ours are the platform, the worker behind vLLM's executor, and the device in it.
    """

    host_path = True
    is_scripted = True
    has_wait_hook = True
    launch = staticmethod(launch)

    @staticmethod
    def complete(config: EngineConfig) -> EngineConfig:
        """Fill in what was left open."""
        device = config.device or "modelled"
        profile = ""
        if DEVICES.load(device).needs_profile:
            profile = config.device_profile or f"{config.model}-h200"
        representation = config.representation or NATIVE
        return replace(config, device=device, device_profile=profile, representation=representation)

    @staticmethod
    def validate(config: EngineConfig) -> None:
        """Raise ValueError where a part is unknown or a number impossible."""
        if DEVICES.load(config.device).needs_profile:
            load_profile(config.device_profile)
        if config.representation != NATIVE:
            REPRESENTATIONS.check(config.representation)
        OUTPUT_PROCESSING.check(config.output_processing)
        check_processes(config)
        model_folder(config.model)
        if config.max_num_seqs < 1:
            raise ValueError(f"batch size {config.max_num_seqs}: must be at least 1")

    @staticmethod
    def contradiction(config: EngineConfig) -> str:
        """Why parts that are each known do not go together, in one sentence, or ""."""
        if config.delivery != "per_request":
            return f"{config.delivery} delivery: vLLM's scheduler reads one request at a time"
        if config.num_accepted != (1,):
            return "several tokens a step: vLLM takes them from a draft model, and here is none"
        shape = config.representation
        if shape != NATIVE and not REPRESENTATIONS.load(shape).owns_memory:
            return f"{shape}: it does not outlive the step, and vLLM may keep it"
        return ""

    @staticmethod
    def is_exact(config: EngineConfig) -> bool:
        """Whether counts repeat to the digit: no clock, no second process, nothing under way."""
        alone = config.worker == config.engine_core == "in-process"
        return alone and config.device == "null" and config.output_processing == "inline"

    def engine_args(self, config: EngineConfig, engine_args_class: Any) -> dict[str, Any]:
        """All that a server would set, with as many blocks as our device says."""
        from engines.vllm import executor
        from engines.vllm.dialect import SCHEDULER_TAKES, representation_of
        from engines.vllm.model import ARCHITECTURE
        from engines.vllm.settings import additional_config

        config = replace(config, representation=representation_of(config.representation))
        backend: Any = executor.HostPathUniProc
        if config.worker == "process":
            backend = executor.HostPathMultiproc
        elif config.representation == SCHEDULER_TAKES:
            backend = "uni"  # nothing to turn back, and the worker is here to stamp the phases
        arguments: dict[str, Any] = {
            "model": str(model_folder(config.model)),
            "load_format": "dummy",
            "skip_tokenizer_init": True,
            "generation_config": "vllm",
            "enforce_eager": True,
            "enable_prefix_caching": False,
            "disable_log_stats": True,
            "max_model_len": config.max_model_len,
            "max_num_seqs": config.max_num_seqs,
            "max_num_batched_tokens": config.max_num_batched_tokens,
            "block_size": config.block_size,
            "num_gpu_blocks_override": num_blocks(config),
            "hf_overrides": {
                "architectures": [ARCHITECTURE],
                "max_position_embeddings": config.max_model_len,
            },
            "distributed_executor_backend": backend,
            "additional_config": additional_config(config, self.device_log_path),
        }
        return arguments | scheduling(config, engine_args_class)


def check_processes(config: EngineConfig) -> None:
    """Raise ValueError where it is not known in which processes vLLM is to run."""
    WORKERS.check(config.worker)
    if config.engine_core not in _ENGINE_CORES:
        raise ValueError(
            f"engine core {config.engine_core!r}: must be {' or '.join(_ENGINE_CORES)}"
        )


def num_blocks(config: EngineConfig) -> int:
    """Blocks of the device's KV cache, and the one that vLLM keeps as null."""
    return 1 + int(DEVICES.load(config.device).num_kv_tokens(config)) // config.block_size


def scheduling(config: EngineConfig, engine_args_class: Any) -> dict[str, Any]:
    """Sync or async scheduling, in the words of the release."""
    defaults = {field.name: field.default for field in fields(engine_args_class)}
    is_async = config.output_processing == "overlapped"
    if is_async and "async_scheduling" not in defaults:
        raise ValueError("this release of vLLM has no async scheduling; leave `overlapped` out")
    arguments: dict[str, Any] = {"async_scheduling": is_async}
    # Up to 0.11.0 the default is a scheduler of the engine before this one.
    if ".v1." not in str(defaults.get("scheduler_cls") or ".v1."):
        arguments["scheduler_cls"] = _ASYNC_SCHEDULER if is_async else _SCHEDULER
    return arguments
