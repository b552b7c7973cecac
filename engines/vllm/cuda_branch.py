"""Which branches a release takes on a CUDA device, by the release's own conditions.

vLLM chooses its model runner by whether Triton works, and its scheduler then does other things for
the one than for the other. Our worker runs no model and needs no Triton.
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

_VARIABLE = "VLLM_USE_V2_MODEL_RUNNER"


def decide_with_triton() -> None:
    """Have vLLM's configuration of this process decide as where Triton works."""
    if find_spec("vllm.config.vllm") is None:  # a release before there was a choice
        return
    config: Any = importlib.import_module("vllm.config.vllm")
    if hasattr(config, "HAS_TRITON"):
        config.HAS_TRITON = True


def model_runner(scheduler: Any) -> str:
    """The one that a scheduler works for."""
    return "V2" if getattr(scheduler, "use_v2_model_runner", False) else "V1"


def model_runner_on_cuda(vllm_config: Any) -> str:
    """The one that the release takes for this configuration where Triton works and nobody asks
    for another; without a condition in the configuration, a variable decides whose default is V1.
    """
    if not hasattr(type(vllm_config), "use_v2_model_runner"):
        return "V1"
    with _nobody_asks():
        return "V2" if vllm_config.use_v2_model_runner else "V1"


@contextmanager
def _nobody_asks() -> Iterator[None]:
    from vllm import envs
    from vllm.config import vllm as config

    asked = vars(envs).get(_VARIABLE, envs)  # which its module else looks up each time
    has_triton = config.HAS_TRITON
    config.HAS_TRITON, vars(envs)[_VARIABLE] = True, None
    try:
        yield
    finally:
        config.HAS_TRITON = has_triton
        del vars(envs)[_VARIABLE]
        if asked is not envs:
            vars(envs)[_VARIABLE] = asked
