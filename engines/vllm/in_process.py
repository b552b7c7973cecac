"""Real vLLM behind the Engine protocol: its own platform, worker and model, GPU or CPU."""

from dataclasses import replace
from typing import Any

from engines.builtin.registries import OUTPUT_PROCESSING
from engines.protocol import EngineConfig
from engines.vllm.engine import VllmEngine
from engines.vllm.host_path import check_processes, scheduling
from engines.vllm.launch import launch
from engines.vllm.models import has_weights, model_folder
from engines.vllm.settings import NATIVE

DEVICES = ("cpu", "cuda")


class InProcessEngine(VllmEngine):
    """Steps take what the model takes; what is in vLLM's executor counts as the device's."""

    host_path = False
    is_scripted = False
    has_wait_hook = False
    launch = staticmethod(launch)

    @staticmethod
    def complete(config: EngineConfig) -> EngineConfig:
        """Fill in what was left open; the device is the one whose vLLM is installed."""
        return replace(
            config,
            device=config.device or _installed_for(),
            device_profile="",
            representation=config.representation or NATIVE,
        )

    @staticmethod
    def validate(config: EngineConfig) -> None:
        """Raise ValueError where a part is unknown or a number impossible."""
        if config.device not in DEVICES:
            raise ValueError(
                f"device {config.device!r}: real vLLM runs on {' or '.join(DEVICES)}; "
                "--engine vllm-hostpath runs its host path without a device"
            )
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
        if config.representation != NATIVE:
            return f"{config.representation}: real vLLM hands over its own representation alone"
        return ""

    @staticmethod
    def is_exact(config: EngineConfig) -> bool:
        """Never: a model's arithmetic has threads, and its steps a clock."""
        return False

    def engine_args(self, config: EngineConfig, engine_args_class: Any) -> dict[str, Any]:
        """All that a server would set."""
        from engines.vllm import executor
        from engines.vllm.settings import additional_config

        folder = model_folder(config.model)
        watched = {"in-process": executor.TimedUniProc, "process": executor.TimedMultiproc}
        arguments: dict[str, Any] = {
            "model": str(folder),
            "load_format": "auto" if has_weights(folder) else "dummy",
            "skip_tokenizer_init": True,
            "generation_config": "vllm",
            "dtype": "float32" if config.device == "cpu" else "auto",
            "enforce_eager": config.device == "cpu",
            "enable_prefix_caching": False,
            "disable_log_stats": True,
            "max_model_len": config.max_model_len,
            "max_num_seqs": config.max_num_seqs,
            "max_num_batched_tokens": config.max_num_batched_tokens,
            "seed": config.seed % 2**32,
            "distributed_executor_backend": watched[config.worker],
            "additional_config": additional_config(config, self.device_log_path),
        }
        return arguments | scheduling(config, engine_args_class)


def _installed_for() -> str:
    """ "cuda" where a driver is loaded, else "cpu"."""
    from pathlib import Path

    return "cuda" if Path("/proc/driver/nvidia/version").exists() else "cpu"
