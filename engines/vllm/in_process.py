"""Real vLLM behind the Engine protocol: its own platform, worker and model, GPU or CPU."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from engines.protocol import ContradictionError, EngineConfig, Traits
from engines.vllm import arguments
from engines.vllm.engine import VllmEngine
from engines.vllm.model_folder import has_weights, model_folder
from engines.vllm.settings import NATIVE

VLLM_DEVICES = ("cpu", "cuda")


class InProcessEngine(VllmEngine):
    """Steps take what the model takes; what is in vLLM's executor counts as the device's."""

    host_path = False
    script = ""
    has_wait_hook = False

    @staticmethod
    def complete(config: EngineConfig) -> EngineConfig:
        """Fill in what was left open; the device is the one whose vLLM is installed.

        Raises ValueError where a part is unknown or a number impossible, ContradictionError where
        parts do not go together.
        """
        config = replace(
            config,
            device=config.device or _installed_for(),
            device_profile="",
            representation=config.representation or NATIVE,
        )
        if config.device not in VLLM_DEVICES:
            raise ValueError(
                f"device {config.device!r}: real vLLM runs on {' or '.join(VLLM_DEVICES)}; "
                "--engine vllm-hostpath runs its host path without a device"
            )
        arguments.check_arguments(config)
        if max(config.num_accepted) > 1:
            raise ContradictionError(
                "several tokens per step: real vLLM takes them from a draft model, and here is "
                "none; use --engine vllm-hostpath, whose drafts are scripted"
            )
        if config.representation != NATIVE:
            raise ContradictionError(
                f"{config.representation}: real vLLM hands over its own representation alone"
            )
        return config

    @staticmethod
    def traits(config: EngineConfig) -> Traits:
        """vLLM takes nine tenths of a GPU's memory. Its model's arithmetic has threads, and a
        device goes on with what it has been given.
        """
        return Traits(
            takes_gpu=config.device == "cuda", has_messages=arguments.has_messages(config)
        )

    def executor_class(self, config: EngineConfig) -> Any:
        """vLLM's own, timed."""
        from engines.vllm import executor

        return executor.TimedMultiproc if config.worker == "process" else executor.TimedUniProc

    def engine_args(self, config: EngineConfig, engine_args_class: Any) -> dict[str, Any]:
        """All that a server would set."""
        from engines.vllm.settings import additional_config

        with_weights = has_weights(model_folder(config.model))
        common = arguments.common_arguments(config, engine_args_class, self.tokenizer_folder)
        return common | {
            "load_format": "auto" if with_weights else "dummy",
            "dtype": "float32" if config.device == "cpu" else "auto",
            "enforce_eager": config.device == "cpu",
            "seed": config.seed % 2**32,
            "additional_config": additional_config(config, self.device_log_path),
        }


def _installed_for() -> str:
    """ "cuda" where a driver is loaded, else "cpu"."""
    return "cuda" if Path("/proc/driver/nvidia/version").exists() else "cpu"
