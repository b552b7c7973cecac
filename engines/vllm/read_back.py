"""How vLLM really runs: its switches, read off the engine core and the front end that are there.

A platform, a release or a model may override what was asked for, and says so at most in a log.
"""

import logging
import os
import sys
import threading
from collections.abc import Iterable
from typing import Any

from engines.protocol import NOT_AS_DEPLOYED, EngineConfig, EngineState, Setting
from engines.vllm.arguments import takes_defaults
from engines.vllm.cuda_branch import model_runner, model_runner_on_cuda
from engines.vllm.host_process import HostProcess
from engines.vllm.loop_front_end import LoopFrontEnd
from engines.vllm.served import ServedFrontEnd


def engine_state(config: EngineConfig, llm_engine: Any, core: dict[str, Setting]) -> EngineState:
    """What `core_settings` found, and the front end's part, beside what was asked for."""
    core_pid = core.pop("pid")
    found = core | {
        "engine_core": "in-process" if core_pid == os.getpid() else "process",
        "front_end": "async" if isinstance(llm_engine, LoopFrontEnd) else "llm",
        "detokenizer": _present(llm_engine.output_processor.tokenizer),
        "log_stats": bool(llm_engine.log_stats),
        "log_level": logging.getLevelName(logging.getLogger("vllm").getEffectiveLevel()),
    }
    if isinstance(llm_engine, ServedFrontEnd):
        found["served_by"] = llm_engine.served_by
    here, on_cuda = core["model_runner"], core["model_runner_on_cuda"]
    if here != on_cuda:
        found[NOT_AS_DEPLOYED] = (
            f"vLLM's scheduler works for model runner {here}; on CUDA this release takes {on_cuda}"
        )
    names = (
        "output_processing",
        "enable_prefix_caching",
        "scheduling_policy",
        "worker",
        "engine_core",
        "front_end",
        "log_stats",
        "detokenizer",
        "tensor_parallel_size",
        "max_num_seqs",
        "max_num_batched_tokens",
        "max_model_len",
    )
    own = ("output_processing", "enable_prefix_caching") if takes_defaults(config) else ()
    asked = {name: getattr(config, name) for name in names if name not in own}
    asked |= {"enable_chunked_prefill": True, "num_spec_tokens": max(config.num_accepted) - 1}
    return EngineState(found, asked)


def core_settings(core: Any) -> dict[str, Setting]:
    """The switches of an ``EngineCore``, and the process that it is in."""
    from vllm.triton_utils import HAS_TRITON

    scheduler = core.scheduler
    config = scheduler.scheduler_config
    return {
        "pid": os.getpid(),
        "scheduler": _class_name(scheduler),
        "executor": _class_name(core.model_executor),
        "output_processing": _output_processing(core),
        "model_runner": model_runner(scheduler),
        "model_runner_on_cuda": model_runner_on_cuda(core.vllm_config),
        "triton": bool(HAS_TRITON),
        "attention_backend": str(_attention_backend(core.vllm_config)),
        "block_size": int(scheduler.block_size),
        "scheduler_flags": ", ".join(sorted(_set_flags(scheduler))),
        "enable_prefix_caching": bool(scheduler.kv_cache_manager.enable_caching),
        "enable_chunked_prefill": bool(config.enable_chunked_prefill),
        "scheduling_policy": str(scheduler.policy.value),
        "worker": "in-process" if hasattr(core.model_executor, "driver_worker") else "process",
        "tensor_parallel_size": int(core.vllm_config.parallel_config.tensor_parallel_size),
        "max_num_seqs": int(scheduler.max_num_running_reqs),
        "max_num_batched_tokens": int(scheduler.max_num_scheduled_tokens),
        "max_model_len": int(scheduler.max_model_len),
        "num_spec_tokens": int(scheduler.num_spec_tokens),
    }


def _set_flags(scheduler: Any) -> Iterable[str]:
    """Those that a release's scheduler branches by."""
    return (name for name, value in vars(scheduler).items() if value is True)


def _attention_backend(vllm_config: Any) -> Any:
    """The one that is asked for, None where the platform's default is to be had; our worker has
    none, and what of it reaches the scheduler is the size of a block.
    """
    attention = getattr(vllm_config, "attention_config", None)
    return getattr(attention, "backend", None)


def core_settings_here(process: HostProcess) -> dict[str, Setting] | None:
    """`core_settings` of a process of vLLM's own; None where it holds no engine core."""
    if process.role != "engine":
        return None
    return core_settings(_core_on_the_stack())


def _core_on_the_stack() -> Any:
    """The engine core of this process: vLLM keeps it nowhere but in its main thread's frames.

    They are its busy loop's, or before that of the function that has made it.
    """
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        for name in ("self", "engine_core"):
            core = frame.f_locals.get(name)
            if hasattr(core, "scheduler") and hasattr(core, "model_executor"):
                return core
        frame = frame.f_back
    raise ValueError("vLLM's engine core is not where this release's switches can be read")


def _output_processing(core: Any) -> str:
    """A scheduler that plans ahead, and a queue of batches for what it plans, or neither."""
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler

    plans_ahead = isinstance(core.scheduler, AsyncScheduler)
    has_queue = core.batch_queue is not None
    if plans_ahead != has_queue:
        name = type(core.scheduler).__name__
        return f"{name} {'with' if has_queue else 'without'} a queue of batches"
    return "overlapped" if plans_ahead else "inline"


def _present(tokenizer: Any) -> str:
    if tokenizer is None:
        return "none"
    # Releases ask in different ways whether they may use the library's `DecodeStream`.
    is_fast = getattr(tokenizer, "is_fast", False)
    return "decode_stream" if is_fast else type(tokenizer).__name__


def _class_name(part: Any) -> str:
    return f"{type(part).__module__}.{type(part).__qualname__}"
