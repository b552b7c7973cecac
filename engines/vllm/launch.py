"""Where a trial with vLLM runs: which interpreter, and what comes first on its path."""

import importlib.util
import os
import sys

from engines.prepared.launch import launch_prepared
from engines.protocol import Launch
from engines.vllm.releases import VLLM
from engines.vllm.settings import ENTRY_POINTS

# It speaks of vLLM's shared memory after a killed trial has said its last, which is what counts.
_NO_LAST_WORDS = {"PYTHONWARNINGS": "ignore:resource_tracker"}


def launch_vllm(python: str, release: str) -> Launch:
    """The interpreter asked for, or this one if it has vLLM, or the one that was prepared.

    A ``release`` is a version that was prepared or the path of a source tree; its files come
    first on the path. The user's switches of vLLM are part of it. Raises ValueError where there
    is no vLLM to run.
    """
    if not python and not release and _is_installed():
        python = sys.executable
    chosen, environment = launch_prepared(VLLM, python, release, ENTRY_POINTS)
    theirs = {name: value for name, value in os.environ.items() if name.startswith("VLLM_")}
    return Launch(chosen, theirs | environment | _NO_LAST_WORDS)


def _is_installed() -> bool:
    """Whether this interpreter finds vLLM; any folder of that name would be found too."""
    spec = importlib.util.find_spec("vllm")
    return spec is not None and spec.origin is not None
