"""Where a trial with vLLM runs: which interpreter, and what comes first on its path."""

import importlib.util
import os
import sys
from pathlib import Path

from engines.interpreter import import_path, interpreter
from engines.protocol import Launch, Releases
from engines.release_names import is_version
from engines.vllm import releases as vllm_releases
from engines.vllm.releases import base_interpreter, layer
from engines.vllm.releases import prepare_release as make
from engines.vllm.settings import ENTRY_POINTS

_CODE_ROOT = Path(__file__).parents[2]

# It speaks of vLLM's shared memory after a killed trial has said its last, which is what counts.
_NO_LAST_WORDS = {"PYTHONWARNINGS": "ignore:resource_tracker"}


def launch_vllm(python: str, release: str) -> Launch:
    """The interpreter asked for, or this one if it has vLLM, or the one that was prepared.

    A ``release`` is a version that was prepared or the path of a source tree; its files come
    first on the path. The user's switches of vLLM are part of it. Raises ValueError where there
    is no vLLM to run.
    """
    path = [_CODE_ROOT, ENTRY_POINTS]
    if release:
        path.insert(0, layer(release))
    if python:
        chosen = interpreter(python)
    elif not release and _is_installed():
        chosen = sys.executable
    elif (prepared := base_interpreter()) is not None:
        chosen = str(prepared)
    else:
        raise ValueError(
            "there is no vLLM here: run `make vllm` (gcbench releases vllm --prepare), or name an "
            "interpreter that has it by --axis python"
        )
    theirs = {name: value for name, value in os.environ.items() if name.startswith("VLLM_")}
    return Launch(chosen, theirs | import_path(*path) | _NO_LAST_WORDS)


def releases() -> Releases:
    """Those on the package index."""
    return vllm_releases


def prepare(release: str) -> None:
    """Make a version's layer and what it imports from, if they are not there; a tree is or is not.

    Raises ReleaseError.
    """
    if not is_version(release):
        return
    try:
        launch_vllm("", release)
    except ValueError:
        make(release, lambda words: None)


def _is_installed() -> bool:
    """Whether this interpreter finds vLLM; any folder of that name would be found too."""
    spec = importlib.util.find_spec("vllm")
    return spec is not None and spec.origin is not None
