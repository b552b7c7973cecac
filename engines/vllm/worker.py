"""vLLM's worker for the host path: everything a worker is asked, and no forward pass."""

from typing import Any

import torch
from vllm.v1.outputs import AsyncModelRunnerOutput
from vllm.v1.worker import worker_base
from vllm.v1.worker.worker_base import WorkerBase

from engines.vllm.device_log import DeviceLog
from engines.vllm.dialect import DEFERS_SAMPLING, full_attention_spec, model_runner_output
from engines.vllm.gate import Gate
from engines.vllm.host_process import HERE
from engines.vllm.runner import HostPathRunner, LaunchedBatch
from engines.vllm.settings import gate_path, read_additional_config

_MEMORY_BYTES = 1 << 44
"""Room for any cache: how many blocks there are is given by ``num_gpu_blocks_override``."""


class HostPathWorker(WorkerBase):  # type: ignore[misc]  # vLLM is not there for the checker
    """Answers with scripted tokens, at once or after a modelled time.

    The methods' names are vLLM's; some are asked for by some releases only.
    """

    def init_device(self) -> None:
        """Take the device; in a process of its own, also the groups that vLLM names it by."""
        config, device_log = read_additional_config(self.vllm_config)
        self.device = torch.device("cpu")
        self._runner = HostPathRunner(config)
        self._device_log = DeviceLog(device_log)
        is_gated = config.front_end == "async" and config.engine_core == "process"
        is_gated = is_gated and self.rank == 0
        self._gate = Gate(gate_path(device_log)) if is_gated else None
        self._is_async = bool(getattr(self.scheduler_config, "async_scheduling", False))
        self._step: LaunchedBatch | None = None
        self._ended: LaunchedBatch | None = None
        if config.worker == "process":
            self._init_groups()

    def _init_groups(self) -> None:
        from vllm.distributed import ensure_model_parallel_initialized, init_distributed_environment

        ranks = self.parallel_config.tensor_parallel_size
        init_distributed_environment(
            ranks, self.rank, self.distributed_init_method, self.local_rank, backend="gloo"
        )
        ensure_model_parallel_initialized(ranks, 1)

    def load_model(self, **_: Any) -> None:
        """There is none."""

    def get_kv_cache_spec(self) -> dict[str, Any]:
        """A layer's cache for each layer of the model, so that blocks are counted as they are."""
        model, parallel = self.model_config, self.parallel_config
        spec = full_attention_spec(
            block_size=self.cache_config.block_size,
            num_kv_heads=model.get_num_kv_heads(parallel),
            head_size=model.get_head_size(),
            dtype=model.dtype,
            use_mla=False,
        )
        return {f"layers.{i}.attn": spec for i in range(model.get_num_layers(parallel))}

    def determine_available_memory(self) -> int:
        """Bytes for the cache."""
        return _MEMORY_BYTES

    def initialize_from_config(self, kv_cache_config: Any) -> None:
        """No cache is laid out."""

    def initialize_cache(self, num_gpu_blocks: int, num_cpu_blocks: int) -> None:
        """No cache is laid out."""

    def compile_or_warm_up_model(self) -> Any:
        """Seconds of compilation, in the shape that the release wants."""
        times = getattr(worker_base, "CompilationTimes", None)
        return times(0.0, 0.0) if times else 0.0

    def get_supported_kv_cache_layouts(self) -> list[str]:
        """Any will do; this is the one of vLLM's default backend."""
        return ["LBNHC"]

    def set_kv_cache_layout(self, kv_cache_layout: str, *_: Any) -> None:
        """Note what the engine core has decided."""
        from vllm.v1.attention.backends.utils import record_kv_cache_layout

        record_kv_cache_layout(self.cache_config, kv_cache_layout)

    def get_simple_cpu_offload_num_cpu_blocks(self) -> None:
        """Nothing is offloaded."""

    def get_kv_connector_handshake_metadata(self) -> None:
        """No worker has anything to say to another's connector."""

    def get_supported_tasks(self) -> tuple[str, ...]:
        """Text generation alone."""
        return ("generate",)

    def take_draft_token_ids(self) -> Any:
        """Drafts after the step that ended last, where the engine speculates."""
        from vllm.v1.outputs import DraftTokenIds

        assert self._ended is not None
        return DraftTokenIds(*self._runner.draft(self._ended))

    def get_model(self) -> None:
        """There is none."""

    def check_health(self) -> None:
        """Always healthy."""

    def shutdown(self) -> None:
        """Nothing is held."""

    def execute_model(self, scheduler_output: Any) -> Any:
        """Start the step; the tokens now or, where the release asks twice, in `sample_tokens`."""
        HERE.ended("schedule")
        if not scheduler_output.total_num_scheduled_tokens:
            # The last requests before an idle time are named in a step of nobody.
            self._runner.forget(scheduler_output.finished_req_ids)
            return model_runner_output([], {}, [])
        self._step = self._runner.launch(scheduler_output)
        HERE.ended("launch")
        return None if DEFERS_SAMPLING else self.sample_tokens(None)

    def sample_tokens(self, grammar_output: Any) -> Any:
        """The tokens of the step that was started last, or a promise of them."""
        step, self._step = self._step, None
        assert step is not None
        return _Promise(self, step) if self._is_async else self.finish(step)

    def finish(self, step: LaunchedBatch) -> Any:
        """Wait for a step and hand its tokens over."""
        if HERE.while_device_busy is not None:
            HERE.while_device_busy()
        if self._gate is not None:
            self._gate.wait()
        device_ns, late_ns = step.handle.wait()
        if self.rank == 0:  # the ranks are one device
            self._device_log.add(device_ns, late_ns, step.handle.step_seconds)
        HERE.ended("wait")
        self._ended = step
        sampled = self._runner.handoff(step)
        HERE.ended("handoff")
        return model_runner_output(
            step.req_ids, step.req_id_to_index, sampled, step.handle.logprobs
        )


class _Promise(AsyncModelRunnerOutput):  # type: ignore[misc]
    """A step's tokens under async scheduling: waited for when vLLM wants them."""

    def __init__(self, worker: HostPathWorker, step: LaunchedBatch) -> None:
        self._worker = worker
        self._step = step

    def get_output(self) -> Any:
        """Block until they are there."""
        return self._worker.finish(self._step)

    def get_kv_connector_output(self) -> None:
        """No cache is moved; asked for from 0.33 on."""
