"""What SGLang's releases ask of newer packages, and of a machine without a GPU, that is not there.

Nothing of it is on the way of a step.
"""

import os
import pkgutil
from collections.abc import Iterable, Iterator
from importlib import import_module
from pkgutil import ModuleInfo
from typing import Any

from engines.sglang.stubs import GPU_PACKAGES, stand_in_for

_MODELS = "sglang.srt.models."


def import_host_path() -> None:
    """Import SGLang's scheduler in this process, with all that it lacks here in its place."""
    os.environ |= {
        "SGLANG_USE_CPU_ENGINE": "1",  # else it looks for a GPU and ends without one
        "HF_HUB_OFFLINE": "1",  # a model's folder is all there is
        "TORCHDYNAMO_DISABLE": "1",  # else it compiles for a minute, and collects meanwhile
    }
    _of_torch()
    _of_triton()
    _of_transformers()
    pkgutil.iter_modules = _without_models  # type: ignore[assignment]
    stand_in_for(*GPU_PACKAGES)
    import_module("sglang.srt.managers.scheduler")


def _of_torch() -> None:
    """Up to 0.5.1 SGLang asks torch for AMX by a name that is gone; the CPU has no part here."""
    import torch

    if not hasattr(torch._C._cpu, "_is_amx_tile_supported"):
        torch._C._cpu._is_amx_tile_supported = lambda: False  # type: ignore[attr-defined]


def _of_triton() -> None:
    """0.4.6 imports functions of an older Triton, for a cache that only kernels use."""
    from triton.runtime import cache

    for name in ("default_cache_dir", "default_dump_dir", "default_override_dir"):
        if not hasattr(cache, name):
            setattr(cache, name, lambda: os.devnull)


def _of_transformers() -> None:
    """Releases register configs that transformers has itself by now, and it refuses them."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind: Any = type(CONFIG_MAPPING)
    register = kind.register

    def register_again(self: Any, key: str, value: Any, exist_ok: bool = False) -> None:
        register(self, key, value, exist_ok=True)

    kind.register = register_again


_iter_modules = pkgutil.iter_modules


def _without_models(path: Iterable[str] | None = None, prefix: str = "") -> Iterator[ModuleInfo]:
    """SGLang imports all its models to find one, minutes of it; ours is registered by hand."""
    for found in _iter_modules(path, prefix):
        if prefix != _MODELS:
            yield found
