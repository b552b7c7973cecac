"""vLLM's out-of-tree platform for the host path: a CPU whose worker runs no model."""

from typing import Any

from vllm.platforms.cpu import CpuPlatform


class HostPathPlatform(CpuPlatform):  # type: ignore[misc]  # vLLM is not there for the checker
    """Changes the worker and leaves the executor as it was asked for."""

    @classmethod
    def check_and_update_config(cls, vllm_config: Any) -> None:
        """Let the CPU platform fill in what it does, then put ours in its place."""
        parallel_config = vllm_config.parallel_config
        executor = parallel_config.distributed_executor_backend
        super().check_and_update_config(vllm_config)
        # The CPU platform wants a worker process where the engine core has one of its own.
        parallel_config.distributed_executor_backend = executor
        parallel_config.worker_cls = "engines.vllm.worker.HostPathWorker"

    @classmethod
    def import_kernels(cls) -> None:
        """There are none."""
