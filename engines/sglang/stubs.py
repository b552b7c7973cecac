"""Packages that SGLang's modules name while they are imported and its host path never calls."""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

GPU_PACKAGES = ("flashinfer", "sgl_kernel", "torchao", "torchvision", "vllm")
"""Of all releases together; Triton imports without a GPU and is there itself."""


class StubCalledError(RuntimeError):
    """The host path has called something of a package that is not here."""


class Stub:
    """A name of a package that is not here: may be imported, looked at and inherited from."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> "Stub":
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(f"{self._name}.{name}")

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        """Raise StubCalledError, which names it."""
        raise StubCalledError(
            f"SGLang called {self._name}, of a package that is no part of its host path here; "
            " take another setting, or tell gcbench of the release"
        )

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (object,)

    def __or__(self, other: Any) -> "Stub":
        return self  # of an annotation

    __ror__ = __or__


class _StubModule(ModuleType):
    def __getattr__(self, name: str) -> Stub:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(f"{self.__name__}.{name}")


class _Finder(MetaPathFinder, Loader):
    def __init__(self, packages: tuple[str, ...]) -> None:
        self._packages = packages

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A module for whatever is in one of the packages."""
        if fullname.partition(".")[0] not in self._packages:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Empty; what is asked of it is made then."""
        return _StubModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


def stand_in_for(*packages: str) -> None:
    """From now on, in this process."""
    sys.meta_path.insert(0, _Finder(packages))
