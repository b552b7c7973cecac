"""vLLM's out-of-tree platform for the host path: a CPU whose worker runs no model."""

from dataclasses import fields
from typing import Any

from vllm.platforms.cpu import CpuPlatform


class HostPathPlatform(CpuPlatform):  # type: ignore[misc]  # vLLM is not there for the checker
    """Changes the worker; scheduler, prefix cache and executor stay as they were asked for."""

    @classmethod
    def check_and_update_config(cls, vllm_config: Any) -> None:
        """Let the CPU platform fill in what it does, then undo what suits only its own worker.

        It switches async scheduling off from 0.14 on, may switch chunked prefill and prefix
        caching off, and wants a worker process where the engine core has a process of its own.
        """
        scheduler, cache = vllm_config.scheduler_config, vllm_config.cache_config
        parallel = vllm_config.parallel_config
        asked = {field.name: getattr(scheduler, field.name) for field in fields(scheduler)}
        executor = parallel.distributed_executor_backend
        prefix_caching = cache.enable_prefix_caching
        super().check_and_update_config(vllm_config)
        for name, value in asked.items():
            setattr(scheduler, name, value)
        cache.enable_prefix_caching = prefix_caching
        parallel.distributed_executor_backend = executor
        parallel.worker_cls = "engines.vllm.worker.HostPathWorker"

    @classmethod
    def import_kernels(cls) -> None:
        """There are none."""
