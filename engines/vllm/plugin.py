"""What vLLM calls in each of its processes, found by its entry points."""

import os
from multiprocessing import parent_process

from engines.vllm.settings import CONTROL_VARIABLE, HOST_PATH_VARIABLE


def platform() -> str | None:
    """Entry point of ``vllm.platform_plugins``: ours for the host path, else none."""
    return "engines.vllm.platform.HostPathPlatform" if HOST_PATH_VARIABLE in os.environ else None


def general() -> None:
    """Entry point of ``vllm.general_plugins``: ready the process for the probe and the model."""
    if HOST_PATH_VARIABLE in os.environ:
        from engines.vllm.cuda_branch import decide_with_triton
        from engines.vllm.empty_model import register

        register()
        decide_with_triton()
        if parent_process() is not None:
            _take_all_cores()
    if CONTROL_VARIABLE in os.environ and parent_process() is not None:
        from engines.vllm.control import answer

        answer(os.environ[CONTROL_VARIABLE])


def _take_all_cores() -> None:
    """Those of the process that started this one, as a GPU's worker has them.

    From 0.20 on vLLM's CPU platform has OpenMP bind a worker to the first core of its own, for
    arithmetic that is not done here. There it meets whatever else is bound, and while it waits for
    a step it spins.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, os.sched_getaffinity(os.getppid()))
