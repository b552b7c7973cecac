"""Triton's kernels in a process of their own, where its interpreter runs them.

Triton decides at its first import whether it compiles or interprets: TRITON_INTERPRET in this
process would decide for every other test too.
"""

import os
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context, resource_tracker
from operator import attrgetter
from types import TracebackType
from typing import Any
from unittest.mock import patch

from torch import Tensor

KERNELS = "engines.builtin.model.kernels"


class TritonProcess:
    """Calls functions there; tensors among their arguments come back as they left them."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(1, get_context("spawn"))
        with patch.dict(os.environ, TRITON_INTERPRET="1"):
            self._pool.submit(int).result()

    def __call__(self, function: str | Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """``"module:name"`` of a module of the kernels or ``":name"`` of their package, which
        this process had better not import; or a function of a module that it may.
        """
        # Bytes: torch would send tensors as handles of shared memory.
        sent = pickle.dumps((function, arguments, options))
        result, left = pickle.loads(self._pool.submit(_call, sent).result())
        for mine, theirs in zip(arguments, left, strict=True):
            if isinstance(mine, Tensor):
                mine.copy_(theirs)
        return result

    def __enter__(self) -> "TritonProcess":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pool.shutdown()
        # Other tests want no process left, and multiprocessing's own would stay to the end.
        resource_tracker._resource_tracker._stop()


def _call(sent: bytes) -> bytes:
    function, arguments, options = pickle.loads(sent)
    if isinstance(function, str):
        module, name = function.split(":")
        found = import_module(f"{KERNELS}.{module}" if module else KERNELS)
        function = attrgetter(name)(found)
    return pickle.dumps((function(*arguments, **options), arguments))
