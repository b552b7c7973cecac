"""From ``package.module:function`` to a function that takes no arguments, or a sentence why not."""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from engines.nearest import nearest


def module_of(target: str) -> str:
    """The module that a target names. Raises ValueError where it is not ``module:function``."""
    module, _, path = target.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *path.split("."))):
        raise ValueError(f"{target}: must be package.module:function")
    return module


def function_of(target: str) -> Callable[[], object]:
    """The function, or the ``step`` of the object, or of one that the class makes.

    Raises ValueError, in one sentence, where there is none that can be called as it stands.
    """
    module, path = module_of(target), target.partition(":")[2]
    found = _imported(target, module)
    for name in path.split("."):
        if not hasattr(found, name):
            near = ", ".join(nearest(name, [each for each in dir(found) if each[0] != "_"])[:3])
            raise ValueError(f"{target}: there is no {name}; did you mean {near or 'another'}?")
        found = getattr(found, name)
    if hasattr(found, "step"):
        found = (_made(target, found) if isinstance(found, type) else found).step
    if not callable(found):
        kind = type(found).__name__
        raise ValueError(f"{target}: is {kind} and cannot be called; name a function")
    if wanted := _arguments(found):
        raise ValueError(
            f"{target}: takes arguments ({', '.join(wanted)}); name a function without any, "
            "which calls it with them"
        )
    if inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found):
        raise ValueError(f"{target}: only makes a coroutine; name a function that runs it")
    if inspect.isgeneratorfunction(found):
        raise ValueError(f"{target}: only makes a generator; name a function that exhausts it")
    function: Callable[[], object] = found
    return function


def _imported(target: str, module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise ValueError(
                f"{target}: there is no module {error.name}; run gcbench in the folder that has "
                "it, or install it"
            ) from error
        raise ValueError(f"{target}: {module} cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"{target}: {module} cannot be imported: {why}") from error


def _made(target: str, kind: type) -> Any:
    try:
        return kind()
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{target}: cannot be made without arguments: {why}; name an object that has step"
        ) from error


def _arguments(found: Any) -> list[str]:
    """Those that a call must give; none where a function in C does not say."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return []
    free = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        each.name for each in parameters if each.default is each.empty and each.kind not in free
    ]
